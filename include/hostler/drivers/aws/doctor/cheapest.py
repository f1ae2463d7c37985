"""The offering that a dry run asks for."""

from decimal import Decimal

from hostler.catalog.aws import AwsInstanceType, load
from hostler.drivers.aws.convert import CLOUD
from hostler.drivers.aws.doctor.asking import Patient
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

_TRIED = 20
"""Types that are asked for: the cheapest of the region."""


def cheapest_offering(patient: Patient, region: str, kind: CapacityType) -> Offering | None:
    """Returns the cheapest accelerator type that EC2 offers in a zone with a subnet; None when there is none."""
    cheapest = sorted((item for item in load().values() if item.accelerator_count), key=lambda item: _size(item, region))[
        :_TRIED
    ]
    offered = _offered(patient, region, [item.instance_type for item in cheapest])
    zones = patient.lookups.zones_with_subnet(region)
    for item in cheapest:
        for zone in sorted(zones):
            if (item.instance_type, zone) in offered:
                return _offering(item, region, zone, kind)
    return None


def _size(item: AwsInstanceType, region: str) -> tuple[bool, Decimal, int, str]:
    """Sorts by price; types without one in the region come after, by size."""
    price = item.price_usd_per_hour(region)
    return price is None, price or Decimal(0), item.vcpu_count, item.instance_type


def _offered(patient: Patient, region: str, names: list[str]) -> frozenset[tuple[str, str]]:
    found = patient.calls.pages(
        region,
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": names}],
    )
    return frozenset((item["InstanceType"], item["Location"]) for item in found)


def _offering(item: AwsInstanceType, region: str, zone: str, kind: CapacityType) -> Offering:
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
        price_usd_per_hour=item.price_usd_per_hour(region) or Decimal(0),
    )
