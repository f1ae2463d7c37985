"""EC2 capacity reservations: made, listed, cancelled. Capacity blocks are not sold here: they cost money in advance.

Source: EC2 API reference, CreateCapacityReservation and its siblings.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hostler_sandbox.aws.account import Account, Reservation
from hostler_sandbox.aws.show import ACCOUNT
from hostler_sandbox.state.cloud import Cloud
from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.stock import facts_of
from hostler_sandbox.state.types import zones_of

Params = Mapping[str, Any]


class Reservations:
    """The actions, by name in ``actions``."""

    def __init__(self, cloud: Cloud, account: Account) -> None:
        self._cloud = cloud
        self._account = account
        self.actions: dict[str, Callable[[Params, str], dict[str, Any]]] = {
            "CreateCapacityReservation": self.create,
            "DescribeCapacityReservations": self.describe,
            "CancelCapacityReservation": self.cancel,
        }

    def create(self, params: Params, region: str) -> dict[str, Any]:
        """Reserves machines of a type in a zone."""
        facts, zone = facts_of(params["InstanceType"]), params.get("AvailabilityZone") or f"{region}a"
        if zone not in zones_of(facts, region):
            raise RefusedError("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
        count = int(params["InstanceCount"])
        made = self._account.reserve(region, zone, facts.name, count)
        pools, key = self._cloud.stock.pools, (zone, facts.name, "reserved")
        pools[key] = pools.get(key, 0) + count
        return {"CapacityReservation": self._shown(made)}

    def describe(self, params: Params, region: str) -> dict[str, Any]:
        """Lists reservations, all or those named."""
        ids = params.get("CapacityReservationIds") or []
        found = [item for item in self._account.reservations.values() if item.region == region]
        return {"CapacityReservations": [self._shown(item) for item in found if not ids or item.reservation_id in ids]}

    def cancel(self, params: Params, region: str) -> dict[str, Any]:
        """Gives a reservation back; machines in it run on."""
        self._account.reserved(region, params["CapacityReservationId"])
        gone = self._account.reservations.pop(params["CapacityReservationId"])
        pools, key = self._cloud.stock.pools, (gone.zone, gone.instance_type, "reserved")
        pools[key] = max(0, pools.get(key, 0) - gone.count)
        return {"Return": True}

    def _shown(self, reservation: Reservation) -> dict[str, Any]:
        left = self._cloud.stock.pools.get((reservation.zone, reservation.instance_type, "reserved"), 0)
        return {
            "CapacityReservationId": reservation.reservation_id,
            "OwnerId": ACCOUNT,
            "InstanceType": reservation.instance_type,
            "AvailabilityZone": reservation.zone,
            "TotalInstanceCount": reservation.count,
            "AvailableInstanceCount": min(left, reservation.count),
            "State": "active",
            "InstanceMatchCriteria": "targeted",
            "InstancePlatform": "Linux/UNIX",
        }
