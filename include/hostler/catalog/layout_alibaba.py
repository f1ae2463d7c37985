"""Alibaba Cloud's types with prices in yuan by region, and the zones they are offered in."""

from typing import Final

from hostler.catalog import quotas
from hostler.catalog.cells import Cells
from hostler.catalog.errors import CatalogError
from hostler.catalog.gather import Gathering, Source, column_indexes, converted
from hostler.catalog.specs import AlibabaFamily, alibaba_families, machine_specs
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

COLUMNS: Final = frozenset(
    {"Region", "InstanceType", "vCPUs", "MemoryGiB", "GpuCount", "Zones", "OnDemandPerHour", "SpotPerHour"}
)

CURRENCY: Final = "CNY"
"""In all regions; the list does not say so. Source: cloudpilot-ai/priceserver, which asks the price API of a Chinese account."""

_UNKNOWN: Final = AlibabaFamily(accelerator="", accelerator_memory_mib=None, is_share=False)


def read_alibaba(cells: Cells, source: Source, into: Gathering) -> None:
    """Reads one list. Raises CatalogError: a row is broken and nothing may be."""
    names = ("Region", "InstanceType", "vCPUs", "MemoryGiB", "GpuCount", "Zones", "OnDemandPerHour", "SpotPerHour")
    at = column_indexes(cells, *names)
    for line, row in into.rows(cells):
        try:
            into.offerings.extend(_offerings([row[index].strip() for index in at], source, line, into))
        except ValueError as error:
            into.refuse(CatalogError(source.name, line, str(error)))


def family_of(instance_type: str) -> str:
    """Returns the family, such as ``gn7i``, of ``ecs.gn7i-c8g1.2xlarge``."""
    return instance_type.removeprefix("ecs.").partition(".")[0].partition("-")[0]


def _offerings(fields: list[str], source: Source, line: int, into: Gathering) -> list[Offering]:
    """Returns one offering a zone and capacity type. Raises ValueError naming the field."""
    region, instance_type, vcpus, memory, count, zones, on_demand, spot = fields
    if not region or not instance_type.startswith("ecs."):
        raise ValueError(f"InstanceType {instance_type!r} in Region {region!r} is not of the form ecs.family.size in a region")
    numbers = into.numbers
    family = alibaba_families().get(family_of(instance_type), _UNKNOWN)
    spec = machine_specs().get(("alibaba", instance_type))
    vcpu_count = numbers.whole(vcpus, "vCPUs", least=1)
    memory_mib = numbers.mib(memory, "MemoryGiB")
    gpu_count = numbers.whole(count, "GpuCount", least=0)
    prices = (numbers.price(on_demand, "OnDemandPerHour"), numbers.price(spot, "SpotPerHour"))
    rate = into.rate(CURRENCY)
    doubts = () if rate is not None else (f"no conversion rate for {CURRENCY} is known",)
    accelerator = spec.accelerator if spec else family.accelerator or f"alibaba-{family_of(instance_type)}"
    return [
        Offering(
            cloud="alibaba",
            region=region,
            zone=zone,
            instance_type=instance_type,
            capacity_type=capacity_type,
            accelerator=accelerator,
            accelerator_count=0 if family.is_share else gpu_count,
            vcpu_count=vcpu_count,
            memory_mib=memory_mib,
            price_usd_per_hour=converted(price, rate),
            currency=CURRENCY,
            price_in_currency_per_hour=price,
            price_source=source.at(line),
            priced_at=source.priced_at,
            accelerator_memory_mib=family.accelerator_memory_mib,
            quotas=quotas.alibaba(instance_type, capacity_type, vcpu_count),
            doubts=doubts if price is not None else (),
        )
        for capacity_type, price in zip((CapacityType.ON_DEMAND, CapacityType.SPOT), prices, strict=True)
        for zone in sorted(zones.split("|"))
    ]
