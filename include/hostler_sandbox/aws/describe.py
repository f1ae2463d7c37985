"""DescribeInstances and DescribeInstanceStatus, from the front's own index."""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from hostler_sandbox.aws import filters, wire
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.instances import Instance, Instances, check_page, view
from hostler_sandbox.aws.moto_server import ACCOUNT
from hostler_sandbox.aws.pages import read_token, write_token
from hostler_sandbox.aws.scheduled import ScheduledEvents
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.machines import MachineState

_STATUS: Final[dict[str, filters.Reader]] = {
    "availability-zone": lambda one: (one["AvailabilityZone"],),
    "instance-state-name": lambda one: (one["InstanceState"]["Name"],),
    "instance-state-code": lambda one: (str(one["InstanceState"]["Code"]),),
    "instance-status.status": lambda one: (one["InstanceStatus"]["Status"],),
    "system-status.status": lambda one: (one["SystemStatus"]["Status"],),
    "event.code": lambda one: [event["Code"] for event in one.get("Events", ())],
    "event.description": lambda one: [event["Description"] for event in one.get("Events", ())],
    "event.instance-event-id": lambda one: [event["InstanceEventId"] for event in one.get("Events", ())],
}
_INITIAL_CHECKS_S: Final = 4.0
"""Sandbox seconds after running until status checks pass; minutes on EC2 (user guide, "Status checks")."""


class Describer:
    """Answers both calls."""

    def __init__(self, estate: Estate, instances: Instances, events: ScheduledEvents) -> None:
        self._estate = estate
        self._instances = instances
        self._events = events

    def instances(self, call: Call) -> bytes:
        """Answers DescribeInstances. MaxResults counts instances. Ids that lists do not show yet are refused as unknown."""
        params = call.params
        wanted, ids, size = params.get("Filters", []), params.get("InstanceIds", []), params.get("MaxResults")
        filters.check(wanted, filters.INSTANCE)
        check_page(size, has_ids=bool(ids))
        now = self._estate.clock.now()
        found = self._instances.by_ids(call.region, ids, now) if ids else self._instances.of_region(call.region, now)
        shown = [one for one in found if not wanted or filters.matches(wanted, view(one), filters.INSTANCE)]
        shown, token = _page(shown, size, params.get("NextToken"))
        if ids:
            call.resources.extend(ids)
        return wire.envelope(call.action, _reservations(shown) + (f"<nextToken>{token}</nextToken>" if token else ""))

    def statuses(self, call: Call) -> bytes:
        """Answers DescribeInstanceStatus: running instances only, unless all are asked for."""
        params = call.params
        wanted, ids, size = params.get("Filters", []), params.get("InstanceIds", []), params.get("MaxResults")
        filters.check(wanted, _STATUS)
        check_page(size, has_ids=bool(ids))
        now = self._estate.clock.now()
        found = self._instances.by_ids(call.region, ids, now) if ids else self._instances.of_region(call.region, now)
        if not params.get("IncludeAllInstances"):
            found = [one for one in found if one.machine.state is MachineState.RUNNING]
        shown = [(one, self._status(one, now)) for one in found]
        passing = {one.instance_id: status for one, status in shown if filters.matches(wanted, status, _STATUS)}
        paged, token = _page([one for one, _ in shown if one.instance_id in passing], size, params.get("NextToken"))
        result = {"InstanceStatuses": [passing[one.instance_id] for one in paged], "NextToken": token}
        return wire.answer(call.action, result)

    def _status(self, one: Instance, now: datetime) -> dict[str, Any]:
        machine = one.machine
        shown = view(one)
        status: dict[str, Any] = {
            "InstanceId": one.instance_id,
            "AvailabilityZone": machine.order.zone,
            "InstanceState": shown["State"],
            "Events": self._events.of(one.instance_id),
        }
        if machine.state is not MachineState.RUNNING or machine.running_at is None:
            return status | {"InstanceStatus": {"Status": "not-applicable"}, "SystemStatus": {"Status": "not-applicable"}}
        is_young = (now - machine.running_at).total_seconds() < _INITIAL_CHECKS_S
        own = "initializing" if is_young else "impaired" if machine.is_boot_broken or machine.notes.get("impaired") else "ok"
        system = "initializing" if is_young else "ok"
        return status | {"InstanceStatus": _check(own), "SystemStatus": _check(system)}


def _check(status: str) -> dict[str, Any]:
    detail = {"ok": "passed", "impaired": "failed"}.get(status, status)
    return {"Status": status, "Details": [{"Name": "reachability", "Status": detail}]}


def _page(found: list[Instance], size: int | None, token: str | None) -> tuple[list[Instance], str | None]:
    """Returns a page. Places are instance numbers, so that instances that come or go in between shift nothing."""
    start = read_token(token) if token else 0
    rest = sorted((one for one in found if one.number > start), key=lambda one: one.number)
    if not size or len(rest) <= size:
        return rest, None
    return rest[:size], write_token(rest[size - 1].number)


def _reservations(found: Iterable[Instance]) -> str:
    """Returns the reservations (EC2's word for the instances of one launch) as XML; instances come from their kept texts."""
    parts = []
    for reservation_id, group in groupby(found, key=lambda one: one.reservation_id):
        items = []
        for one in group:
            view(one)
            items.append(f"<item>{one.cached_xml}</item>")
        parts.append(
            f"<item><reservationId>{reservation_id}</reservationId><ownerId>{ACCOUNT}</ownerId><groupSet/>"
            f"<instancesSet>{''.join(items)}</instancesSet></item>"
        )
    return f"<reservationSet>{''.join(parts)}</reservationSet>"
