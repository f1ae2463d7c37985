"""What EC2 announces about our machines: spot interruptions and scheduled events. Notices are records, not errors.

A rebalance recommendation comes by event bus or on the machine only; the agent reads the latter.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hostler.cloud.driver import Interruption
from hostler.drivers.aws.convert import transition_at

SPOT_NOTICE: Final = timedelta(minutes=2)
"""Between marking a spot machine and taking it. Source: EC2 user guide, "Spot Instance interruption notices"."""

_MARKED: Final = frozenset({"marked-for-termination", "marked-for-stop", "marked-for-hibernation"})
_TAKEN: Final = frozenset(
    {
        "instance-terminated-by-price",
        "instance-terminated-no-capacity",
        "instance-terminated-capacity-oversubscribed",
        "instance-terminated-by-service",
        "instance-terminated-by-experiment",
        "instance-terminated-launch-group-constraint",
    }
)
"""Source: EC2 user guide, "Spot request status codes". ``instance-terminated-by-user`` is our own doing."""

_TAKEN_REASONS: Final = frozenset({"Server.SpotInstanceTermination", "Server.SpotInstanceShutdown"})
"""Source: EC2 API reference, StateReason. ``Client.UserInitiatedShutdown`` is our own doing."""

EVENT_CODES: Final = ("instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop")
"""Source: EC2 API reference, InstanceStatusEvent."""

_OVER: Final = ("[Completed]", "[Canceled]")
"""How the description of an event begins that counts no more. Source: as above."""


def of_instances(instances: Iterable[Mapping[str, Any]], region: str, now: datetime) -> list[Interruption]:
    """Returns a notice for each instance that the cloud has taken and still lists."""
    return [
        _notice(instance["InstanceId"], region, "interruption", transition_at(instance) or now, transition_at(instance) or now)
        for instance in instances
        if instance.get("StateReason", {}).get("Code") in _TAKEN_REASONS
    ]


def of_spot_requests(requests: Iterable[Mapping[str, Any]], region: str, now: datetime) -> list[Interruption]:
    """Returns a notice for each spot request whose machine is marked or taken."""
    notices = []
    for request in requests:
        status = request.get("Status", {})
        code, at = status.get("Code"), status.get("UpdateTime") or now
        if not request.get("InstanceId") or code not in _MARKED | _TAKEN:
            continue
        takes_effect_at = at + SPOT_NOTICE if code in _MARKED else at
        notices.append(_notice(request["InstanceId"], region, "interruption", at, takes_effect_at))
    return notices


def of_statuses(statuses: Iterable[Mapping[str, Any]], region: str, now: datetime) -> list[Interruption]:
    """Returns a notice for each scheduled event that is still to come. EC2 does not say since when it is known."""
    return [
        _notice(status["InstanceId"], region, "maintenance", now, event.get("NotBefore"))
        for status in statuses
        for event in status.get("Events", ())
        if not str(event.get("Description", "")).startswith(_OVER)
    ]


def one_per_machine(notices: Iterable[Interruption]) -> tuple[Interruption, ...]:
    """Returns the first notice of each kind for each machine, in order: a taken spot machine shows up twice."""
    first: dict[tuple[str, str], Interruption] = {}
    for notice in notices:
        first.setdefault((notice.provider_id, notice.kind), notice)
    return tuple(first.values())


def _notice(provider_id: str, region: str, kind: str, noticed_at: datetime, takes_effect_at: datetime | None) -> Interruption:
    return Interruption(
        provider_id=provider_id,
        region=region,
        kind=kind,
        noticed_at=noticed_at.astimezone(UTC),
        takes_effect_at=takes_effect_at.astimezone(UTC) if takes_effect_at else None,
    )
