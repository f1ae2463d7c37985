"""Spot requests of RunInstances, their status, spot prices.

Source of the status codes and their texts: EC2 user guide, "Spot request status codes".
"""

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hostler_sandbox.aws import filters, moto_server, wire
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.launch_checks import Wanted
from hostler_sandbox.aws.pages import page
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.machines import Cause, Machine, MachineState

_TEXTS: Final = {
    "fulfilled": "Your Spot request is fulfilled.",
    "marked-for-termination": "Your Spot Instance is marked for termination.",
    "instance-terminated-by-price": "Your Spot Instance was terminated because the Spot price exceeded your maximum price.",
    "instance-terminated-no-capacity": "Your Spot Instance was terminated because there is no Spot capacity available.",
    "instance-terminated-by-user": "Spot Instance terminated due to user-initiated termination.",
    "instance-terminated-by-service": "Your Spot Instance was terminated by the service.",
    "request-canceled-and-instance-running": "You canceled the Spot request; its instance is still running.",
}
_ENDS: Final = {
    Cause.SPOT_PRICE: "instance-terminated-by-price",
    Cause.SPOT_CAPACITY: "instance-terminated-no-capacity",
    Cause.CALLER: "instance-terminated-by-user",
    Cause.GUEST: "instance-terminated-by-user",
    Cause.RESET: "instance-terminated-by-user",
}
_OVER: Final = frozenset({MachineState.SHUTTING_DOWN, MachineState.TERMINATED})
_READERS: Final[dict[str, filters.Reader]] = {
    "spot-instance-request-id": lambda view: (view["SpotInstanceRequestId"],),
    "instance-id": lambda view: (view["InstanceId"],),
    "state": lambda view: (view["State"],),
    "status-code": lambda view: (view["Status"]["Code"],),
    "type": lambda view: (view["Type"],),
    "launch.instance-type": lambda view: (view["LaunchSpecification"]["InstanceType"],),
    "launched-availability-zone": lambda view: (view["LaunchedAvailabilityZone"],),
}


@dataclass(slots=True, kw_only=True)
class SpotRequest:
    """A one-time request that was fulfilled at once."""

    request_id: str
    machine: Machine
    image_id: str
    max_price: str
    tags: dict[str, str]
    created_at: datetime
    canceled_at: datetime | None = None


class SpotRequests:
    """All spot requests. Thread-safe."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._lock = threading.Lock()
        self._requests: dict[str, SpotRequest] = {}

    def open(self, machine: Machine, wanted: Wanted) -> str:
        """Adds the request of a spot machine and returns its id."""
        request_id = f"sir-{machine.machine_id[2:10]}"
        order = machine.order
        price = wanted.max_price or self._estate.prices.on_demand(order.instance_type, order.vcpu_count)
        request = SpotRequest(
            request_id=request_id,
            machine=machine,
            image_id=wanted.image_id,
            max_price=f"{price:f}",
            tags=dict(wanted.request_tags),
            created_at=machine.launched_at,
        )
        with self._lock:
            self._requests[request_id] = request
        return request_id

    def clear(self) -> None:
        """Forgets all requests."""
        with self._lock:
            self._requests.clear()

    def set_tags(self, request_id: str, tags: dict[str, str | None]) -> None:
        """Changes tags of a request, if it is one; None takes a tag away."""
        with self._lock:
            request = self._requests.get(request_id)
            if request is None:
                return
            for key, value in tags.items():
                if value is None:
                    request.tags.pop(key, None)
                else:
                    request.tags[key] = value

    def describe(self, call: Call) -> bytes:
        """Answers DescribeSpotInstanceRequests."""
        wanted = call.params.get("Filters", [])
        filters.check(wanted, _READERS)
        ids = call.params.get("SpotInstanceRequestIds", [])
        now = self._estate.clock.now()
        with self._lock:
            requests = [one for one in self._requests.values() if one.machine.order.region == call.region]
        missing = set(ids) - {one.request_id for one in requests}
        if missing:
            text = f"The spot instance request ID '{min(missing)}' does not exist"
            raise Ec2Error("InvalidSpotInstanceRequestID.NotFound", text)
        shown = [_view(one) for one in requests if (not ids or one.request_id in ids) and one.machine.visible_at <= now]
        shown = [one for one in shown if filters.matches(wanted, one, _READERS)]
        found, token = page(shown, call.params.get("MaxResults"), call.params.get("NextToken"))
        return wire.answer(call.action, {"SpotInstanceRequests": found, "NextToken": token})

    def cancel(self, call: Call) -> bytes:
        """Answers CancelSpotInstanceRequests: the instances run on."""
        done = []
        for request_id in call.params.get("SpotInstanceRequestIds", []):
            with self._lock:
                request = self._requests.get(request_id)
            if request is None:
                text = f"The spot instance request ID '{request_id}' does not exist"
                raise Ec2Error("InvalidSpotInstanceRequestID.NotFound", text)
            request.canceled_at = request.canceled_at or self._estate.clock.now()
            done.append({"SpotInstanceRequestId": request_id, "State": "cancelled"})
        return wire.answer(call.action, {"CancelledSpotInstanceRequests": done})

    def prices(self, call: Call) -> bytes:
        """Answers DescribeSpotPriceHistory: the price now, and that a price held at the start of the time asked for."""
        params = call.params
        named = [value for one in params.get("Filters", []) if one.get("Name") == "instance-type" for value in one["Values"]]
        zones = [
            value for one in params.get("Filters", []) if one.get("Name") == "availability-zone" for value in one["Values"]
        ]
        zones = [params["AvailabilityZone"]] if "AvailabilityZone" in params else zones
        types = params.get("InstanceTypes", []) or named
        now = self._estate.clock.now()
        start = params.get("StartTime") or now - timedelta(days=1)
        shown = [
            self._price(instance_type, zone, min(start.astimezone(UTC), now) if is_old else now)
            for instance_type in types
            for zone in moto_server.zones_of(call.region, instance_type)
            if not zones or zone in zones
            for is_old in ((False, True) if start < now else (False,))
        ]
        found, token = page(shown, params.get("MaxResults"), params.get("NextToken"))
        return wire.answer(call.action, {"SpotPriceHistory": found, "NextToken": token or ""})

    def _price(self, instance_type: str, zone: str, at: datetime) -> dict[str, Any]:
        price = self._estate.prices.spot(zone, instance_type, moto_server.vcpu_count(instance_type))
        return {
            "AvailabilityZone": zone,
            "InstanceType": instance_type,
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": f"{price:.6f}",
            "Timestamp": at,
        }


def _view(one: SpotRequest) -> dict[str, Any]:
    machine = one.machine
    state, code, at = _status(one)
    return {
        "SpotInstanceRequestId": one.request_id,
        "InstanceId": machine.machine_id,
        "State": state,
        "Status": {"Code": code, "Message": _TEXTS[code], "UpdateTime": at},
        "Type": "one-time",
        "InstanceInterruptionBehavior": "terminate",
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": one.max_price,
        "CreateTime": one.created_at,
        "LaunchedAvailabilityZone": machine.order.zone,
        "LaunchSpecification": {"InstanceType": machine.order.instance_type, "ImageId": one.image_id},
        "Tags": [{"Key": key, "Value": value} for key, value in one.tags.items()],
    }


def _status(one: SpotRequest) -> tuple[str, str, datetime]:
    """Returns state, status code and its time."""
    machine = one.machine
    if machine.state in _OVER:
        at = machine.ended_at or machine.state_since_at
        return "closed", _ENDS.get(machine.changed_by or Cause.CALLER, "instance-terminated-by-service"), at
    if machine.marked_by is not None and machine.marked_at is not None:
        return "active", "marked-for-termination", machine.marked_at
    if one.canceled_at is not None:
        return "cancelled", "request-canceled-and-instance-running", one.canceled_at
    return "active", "fulfilled", one.created_at
