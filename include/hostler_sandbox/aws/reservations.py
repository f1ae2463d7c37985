"""On-demand capacity reservations and capacity blocks, basics.

Source: EC2 API reference, CreateCapacityReservation, DescribeCapacityReservations, DescribeCapacityBlockOfferings. A purchase of a
block is refused unless the sandbox was told to allow it: a block is paid in advance and not refunded.
"""

import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from hostler_sandbox.aws import filters, moto_server, refusals, wire
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.moto_server import ACCOUNT
from hostler_sandbox.aws.pages import page
from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.machines import MachineOrder

_READERS: Final[dict[str, filters.Reader]] = {
    "instance-type": lambda view: (view["InstanceType"],),
    "availability-zone": lambda view: (view["AvailabilityZone"],),
    "state": lambda view: (view["State"],),
    "instance-match-criteria": lambda view: (view["InstanceMatchCriteria"],),
}
_BLOCK_HOURS: Final = 24
_HOURS_PER_DAY: Final = 24


@dataclass(slots=True, kw_only=True)
class Reservation:
    """A reservation. ``used``: machines in it. ``is_block``: a capacity block, which ends at ``ends_at``."""

    reservation_id: str
    region: str
    zone: str
    instance_type: str
    count: int
    used: int = 0
    state: str = "active"
    match: str = "open"
    tags: dict[str, str]
    created_at: datetime
    starts_at: datetime
    ends_at: datetime | None = None
    is_block: bool = False


class Reservations:
    """All reservations. Thread-safe.

    Args:
        allows_blocks: capacity blocks may be bought.
    """

    def __init__(self, estate: Estate, *, allows_blocks: bool = False) -> None:
        self._estate = estate
        self.allows_blocks = allows_blocks
        self._lock = threading.RLock()
        self._found: dict[str, Reservation] = {}
        self._offered: dict[str, tuple[str, int, datetime, int]] = {}

    # -- for launches ---------------------------------------------------------------------------------------------------------

    def take(self, reservation_id: str, order: MachineOrder) -> None:
        """Takes one machine of a reservation that a launch names. Raises Ec2Error."""
        with self._lock:
            one = self._found.get(reservation_id)
            if one is None or one.region != order.region:
                raise _unknown(reservation_id)
            if (one.zone, one.instance_type) != (order.zone, order.instance_type) or one.state != "active":
                text = "The Capacity Reservation's attributes do not match those of the instance, or it is not active."
                raise Ec2Error("InvalidCapacityReservationState", text)
            if one.used >= one.count:
                raise refusals.no_reserved_capacity()
            one.used += 1

    def take_open(self, order: MachineOrder) -> str | None:
        """Takes one machine of an open reservation that fits; returns its id, None when none fits."""
        with self._lock:
            for one in self._found.values():
                fits = (one.zone, one.instance_type, one.match) == (order.zone, order.instance_type, "open")
                if fits and one.state == "active" and not one.is_block and one.used < one.count:
                    one.used += 1
                    return one.reservation_id
        return None

    def give_back(self, reservation_id: str) -> None:
        """Puts one machine back."""
        with self._lock:
            one = self._found.get(reservation_id)
            if one is not None:
                one.used = max(0, one.used - 1)

    def clear(self) -> None:
        """Forgets all reservations and offers."""
        with self._lock:
            self._found.clear()
            self._offered.clear()

    # -- calls ----------------------------------------------------------------------------------------------------------------

    def create(self, call: Call) -> bytes:
        """Answers CreateCapacityReservation: it takes stock and quota, as machines do."""
        params = call.params
        zone, instance_type, count = (
            params.get("AvailabilityZone"),
            params.get("InstanceType", ""),
            params.get("InstanceCount", 0),
        )
        zones = moto_server.zones_of(call.region, instance_type)
        if not zones:
            raise Ec2Error("InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType.")
        if zone not in zones:
            raise refusals.not_offered(instance_type, str(zone), zones)
        if count < 1:
            raise Ec2Error("InvalidParameterValue", f"Invalid value '{count}' for InstanceCount.")
        self._hold(self._order(call.region, zone, instance_type), count)
        one = self._add(call, zone, instance_type, count, match=params.get("InstanceMatchCriteria", "open"))
        one.ends_at = params.get("EndDate")
        return wire.answer(call.action, {"CapacityReservation": _view(one)})

    def describe(self, call: Call) -> bytes:
        """Answers DescribeCapacityReservations."""
        wanted = call.params.get("Filters", [])
        filters.check(wanted, _READERS)
        ids = call.params.get("CapacityReservationIds", [])
        with self._lock:
            known = [one for one in self._found.values() if one.region == call.region]
        missing = set(ids) - {one.reservation_id for one in known}
        if missing:
            raise _unknown(min(missing))
        shown = [_view(one) for one in known if not ids or one.reservation_id in ids]
        shown = [one for one in shown if filters.matches(wanted, one, _READERS)]
        found, token = page(shown, call.params.get("MaxResults"), call.params.get("NextToken"))
        return wire.answer(call.action, {"CapacityReservations": found, "NextToken": token})

    def modify(self, call: Call) -> bytes:
        """Answers ModifyCapacityReservation, for the count of instances."""
        one = self._one(call)
        count = call.params.get("InstanceCount", one.count)
        with self._lock:
            if count < max(1, one.used):
                raise Ec2Error("InvalidParameterValue", f"InstanceCount {count} is below what is in use.")
            order = self._order(one.region, one.zone, one.instance_type)
            if count > one.count:
                self._hold(order, count - one.count)
            for _ in range(one.count - count):
                self._estate.give_back(order)
            one.count = count
        return wire.answer(call.action, {"Return": True})

    def cancel(self, call: Call) -> bytes:
        """Answers CancelCapacityReservation: machines in it run on, as on-demand ones."""
        one = self._one(call)
        with self._lock:
            if one.is_block:
                raise Ec2Error("InvalidCapacityReservationState", "A Capacity Block can't be cancelled.")
            if one.state == "active":
                one.state = "cancelled"
                for _ in range(one.count - one.used):
                    self._estate.give_back(self._order(one.region, one.zone, one.instance_type))
        return wire.answer(call.action, {"Return": True})

    def block_offers(self, call: Call) -> bytes:
        """Answers DescribeCapacityBlockOfferings: one block in the first zone that has the type, from the next hour."""
        params = call.params
        instance_type, count = params.get("InstanceType", ""), params.get("InstanceCount", 1)
        hours = params.get("CapacityDurationHours", _BLOCK_HOURS)
        if hours < _BLOCK_HOURS or hours % _HOURS_PER_DAY:
            raise Ec2Error("InvalidParameterValue", f"Invalid value '{hours}' for CapacityDurationHours.")
        facts = moto_server.type_facts(instance_type) or {}
        zones = moto_server.zones_of(call.region, instance_type)
        if "capacity-block" not in facts.get("SupportedUsageClasses", ()) or not zones:
            return wire.answer(call.action, {"CapacityBlockOfferings": []})
        starts_at = self._estate.clock.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        offer_id = f"cb-{secrets.token_hex(8)}"
        price = self._estate.prices.on_demand(instance_type, moto_server.vcpu_count(instance_type)) * hours * count
        with self._lock:
            self._offered[offer_id] = (f"{zones[0]} {instance_type}", count, starts_at, hours)
        offer = {
            "CapacityBlockOfferingId": offer_id,
            "InstanceType": instance_type,
            "AvailabilityZone": zones[0],
            "InstanceCount": count,
            "StartDate": starts_at,
            "EndDate": starts_at + timedelta(hours=hours),
            "CapacityBlockDurationHours": hours,
            "UpfrontFee": f"{price:.2f}",
            "CurrencyCode": "USD",
            "Tenancy": "default",
        }
        return wire.answer(call.action, {"CapacityBlockOfferings": [offer]})

    def buy_block(self, call: Call) -> bytes:
        """Answers PurchaseCapacityBlock: refused unless allowed. The block is active at once: the sandbox does not wait for days."""
        if not self.allows_blocks:
            text = "The sandbox (simulated) refuses to buy capacity blocks unless started with --allow-capacity-blocks."
            raise Ec2Error("UnsupportedOperation", text)
        with self._lock:
            offer = self._offered.pop(call.params.get("CapacityBlockOfferingId", ""), None)
        if offer is None:
            raise Ec2Error("InvalidCapacityBlockOfferingId.NotFound", "The Capacity Block offering does not exist or is sold.")
        where, count, starts_at, hours = offer
        zone, instance_type = where.split(" ")
        one = self._add(call, zone, instance_type, count, match="targeted")
        one.is_block, one.ends_at = True, starts_at + timedelta(hours=hours)
        return wire.answer(call.action, {"CapacityReservation": _view(one)})

    def _add(self, call: Call, zone: str, instance_type: str, count: int, *, match: str) -> Reservation:
        now = self._estate.clock.now()
        tags = {
            tag["Key"]: tag.get("Value", "")
            for spec in call.params.get("TagSpecifications", [])
            for tag in spec.get("Tags", [])
        }
        one = Reservation(
            reservation_id=f"cr-{secrets.token_hex(8)}0",
            region=call.region,
            zone=zone,
            instance_type=instance_type,
            count=count,
            match=match,
            tags=tags,
            created_at=now,
            starts_at=now,
        )
        with self._lock:
            self._found[one.reservation_id] = one
        return one

    def _hold(self, order: MachineOrder, count: int) -> None:
        held = 0
        try:
            while held < count:
                self._estate.check(order)
                held += 1
        except RefusedError:
            for _ in range(held):
                self._estate.give_back(order)
            raise refusals.no_capacity(order.instance_type, order.zone, ()) from None

    def _one(self, call: Call) -> Reservation:
        reservation_id = call.params.get("CapacityReservationId", "")
        with self._lock:
            one = self._found.get(reservation_id)
        if one is None or one.region != call.region:
            raise _unknown(reservation_id)
        return one

    @staticmethod
    def _order(region: str, zone: str, instance_type: str) -> MachineOrder:
        return MachineOrder(
            cloud="aws", region=region, zone=zone, instance_type=instance_type, capacity_type="on-demand",
            vcpu_count=moto_server.vcpu_count(instance_type),
        )  # fmt: skip


def _unknown(reservation_id: str) -> Ec2Error:
    text = f"The capacity reservation '{reservation_id}' does not exist"
    return Ec2Error("InvalidCapacityReservationId.NotFound", text)


def _view(one: Reservation) -> dict[str, Any]:
    return {
        "CapacityReservationId": one.reservation_id,
        "OwnerId": ACCOUNT,
        "CapacityReservationArn": f"arn:aws:ec2:{one.region}:{ACCOUNT}:capacity-reservation/{one.reservation_id}",
        "InstanceType": one.instance_type,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": one.zone,
        "Tenancy": "default",
        "TotalInstanceCount": one.count,
        "AvailableInstanceCount": one.count - one.used,
        "EbsOptimized": False,
        "EphemeralStorage": False,
        "State": one.state,
        "StartDate": one.starts_at,
        "EndDate": one.ends_at,
        "EndDateType": "limited" if one.ends_at else "unlimited",
        "InstanceMatchCriteria": one.match,
        "CreateDate": one.created_at,
        "ReservationType": "capacity-block" if one.is_block else "default",
        "Tags": [{"Key": key, "Value": value} for key, value in one.tags.items()],
    }
