"""What can be bought on EC2: types by zone from the cloud, prices from catalog and spot market; what cannot, and why."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from hostler.catalog.aws import AwsInstanceType, load, with_accelerators
from hostler.cloud.driver import OfferingQuery
from hostler.drivers.aws.calls import Calls
from hostler.drivers.aws.convert import CLOUD, price
from hostler.drivers.aws.lookups import Lookups
from hostler.drivers.aws.orders import Reservation
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

_PRODUCT: Final = "Linux/UNIX"
"""Spot prices differ by operating system. Source: EC2 API reference, DescribeSpotPriceHistory."""


class Offers:
    """Answers ``list_offerings``."""

    def __init__(self, calls: Calls, lookups: Lookups, settings: AwsSettings) -> None:
        self._calls = calls
        self._lookups = lookups
        self._settings = settings

    def find(self, query: OfferingQuery) -> tuple[Offering, ...]:
        """Returns every combination of type, zone and capacity type asked for; see ``CloudDriver.list_offerings``."""
        types = with_accelerators(load(), query.accelerator, query.accelerators_per_node)
        if not types:
            return ()
        wanted = query.regions or self._settings.regions
        regions = [region for region in self._settings.regions if region in wanted]
        return tuple(offering for region in regions for offering in self._in_region(region, types, query.capacity_types))

    def _in_region(
        self, region: str, types: Sequence[AwsInstanceType], capacity_types: Sequence[CapacityType]
    ) -> list[Offering]:
        names = [item.instance_type for item in types]
        market = _Market(
            zones=self._zones(region),
            offered=self._offered(region, names),
            with_subnet=self._lookups.zones_with_subnet(region),
            spot_prices=self._spot_prices(region, names) if self._sells_spot(capacity_types) else {},
            reservations=self._lookups.reservations(region) if CapacityType.RESERVED in capacity_types else (),
            settings=self._settings,
        )
        return [market.offering(region, zone, item, kind) for zone in market.zones for item in types for kind in capacity_types]

    def _sells_spot(self, capacity_types: Sequence[CapacityType]) -> bool:
        """True when spot is asked for and fleet.yaml has it: the policy of a fleet without spot lets nobody ask for its prices."""
        return CapacityType.SPOT in capacity_types and CapacityType.SPOT in self._settings.capacity_types

    def _zones(self, region: str) -> tuple[str, ...]:
        """Returns the zones of the region, sorted; local and wavelength zones only when the account opted in."""
        answer = self._calls.call(region, "describe_availability_zones")
        return tuple(sorted(zone["ZoneName"] for zone in answer["AvailabilityZones"]))

    def _offered(self, region: str, names: Sequence[str]) -> frozenset[tuple[str, str]]:
        """Returns (type, zone) pairs that EC2 offers. Always asked by name: the whole list is long."""
        found = self._calls.pages(
            region,
            "describe_instance_type_offerings",
            "InstanceTypeOfferings",
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": list(names)}],
        )
        return frozenset((item["InstanceType"], item["Location"]) for item in found)

    def _spot_prices(self, region: str, names: Sequence[str]) -> dict[tuple[str, str], Decimal]:
        """Returns the newest spot price by (type, zone); a pair without one is not in it."""
        found = self._calls.pages(
            region,
            "describe_spot_price_history",
            "SpotPriceHistory",
            InstanceTypes=list(names),
            ProductDescriptions=[_PRODUCT],
            # From now on: EC2 then answers with the price in force of each zone, not with 90 days of changes.
            StartTime=datetime.now(UTC),
        )
        newest: dict[tuple[str, str], Mapping[str, Any]] = {}
        for item in found:
            pair = (item["InstanceType"], item["AvailabilityZone"])
            if pair not in newest or item["Timestamp"] > newest[pair]["Timestamp"]:
                newest[pair] = item
        prices = {pair: price(item.get("SpotPrice")) for pair, item in newest.items()}
        return {pair: found_price for pair, found_price in prices.items() if found_price is not None}


class _Market:
    """One region's answers, put together."""

    def __init__(
        self,
        *,
        zones: tuple[str, ...],
        offered: frozenset[tuple[str, str]],
        with_subnet: frozenset[str],
        spot_prices: Mapping[tuple[str, str], Decimal],
        reservations: tuple[Reservation, ...],
        settings: AwsSettings,
    ) -> None:
        self.zones = zones
        self._offered = offered
        self._with_subnet = with_subnet
        self._spot_prices = spot_prices
        self._reservations = reservations
        self._settings = settings

    def offering(self, region: str, zone: str, item: AwsInstanceType, kind: CapacityType) -> Offering:
        """Returns the offering, marked when it cannot be bought."""
        reason = self._reason_against(zone, item.instance_type, kind)
        spot = self._spot_prices.get((item.instance_type, zone))
        return Offering(
            cloud=CLOUD,
            region=region,
            zone=zone,
            instance_type=item.instance_type,
            capacity_type=kind,
            accelerator=item.accelerator,
            accelerator_count=item.accelerator_count,
            vcpu_count=item.vcpu_count,
            memory_mib=item.memory_mib,
            # A reserved machine costs what an on-demand one does, used or not; a capacity block was paid at that scale before.
            price_usd_per_hour=spot if kind is CapacityType.SPOT else item.price_usd_per_hour(region),
            is_available=reason is None,
            unavailable_reason=reason,
        )

    def _reason_against(self, zone: str, instance_type: str, kind: CapacityType) -> str | None:
        """Returns why it cannot be bought; None when nothing speaks against it."""
        if kind not in self._settings.capacity_types:
            return f"clouds.aws.capacity_types has no {kind}"
        if (instance_type, zone) not in self._offered:
            return f"EC2 does not offer {instance_type} in {zone}"
        if zone not in self._with_subnet:
            return f"clouds.aws.subnets has none in {zone}"
        return self._reason_against_reserved(zone, instance_type) if kind is CapacityType.RESERVED else None

    def _reason_against_reserved(self, zone: str, instance_type: str) -> str | None:
        """Returns why no reservation serves here; None when one has room."""
        fitting = [item for item in self._reservations if (item.zone, item.instance_type) == (zone, instance_type)]
        if not fitting:
            return f"no reservation of clouds.aws.reservations is for {instance_type} in {zone}"
        usable = [item for item in fitting if self._settings.approve_capacity_blocks or not item.is_block]
        if not usable:
            return f"{fitting[0].reservation_id} is a capacity block, and clouds.aws.approve_capacity_blocks is false"
        if all(item.available_count < 1 for item in usable):
            return f"{', '.join(item.reservation_id for item in usable)} has no free machine"
        return None
