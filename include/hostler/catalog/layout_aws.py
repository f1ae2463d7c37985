"""Amazon EC2's types with on-demand prices by region; the table that comes with Hostler has this layout."""

from typing import Final

from hostler.catalog import quotas
from hostler.catalog.cells import Cells
from hostler.catalog.errors import CatalogError
from hostler.catalog.gather import USD, Gathering, Source, column_indexes, converted
from hostler.catalog.names import short_name
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

COLUMNS: Final = frozenset({"InstanceType", "Region", "OnDemandPerHour", "vCPUs", "MemoryMiB", "GpuName", "GpuCount"})

_NAMES: Final = (
    "InstanceType",
    "Region",
    "OnDemandPerHour",
    "vCPUs",
    "MemoryMiB",
    "GpuName",
    "GpuCount",
    "GpuMemoryMiB",
    "LocalNvmeGB",
    "NetworkMbps",
    "Efa",
)

_YUAN_REGIONS: Final = "cn-"
"""Prices of the two regions in China are in yuan; the list does not say so. Source: a g5.xlarge is 9.51 there, 1.006 in us-east-1."""

_GIB_PER_GB: Final = 10**9 / 2**30


def read_aws(cells: Cells, source: Source, into: Gathering) -> None:
    """Reads one list. Raises CatalogError: a row is broken and nothing may be."""
    at = column_indexes(cells, *_NAMES)
    for line, row in into.rows(cells):
        try:
            into.offerings.append(_offering([row[index].strip() for index in at], source, line, into))
        except ValueError as error:
            into.refuse(CatalogError(source.name, line, str(error)))


def _offering(fields: list[str], source: Source, line: int, into: Gathering) -> Offering:
    """Returns the row as an offering. Raises ValueError naming the field."""
    instance_type, region, price, vcpus, memory, word, count, gpu_memory, nvme, network, efa = fields
    numbers = into.numbers
    if "." not in instance_type:
        raise ValueError(f"InstanceType {instance_type!r} is not of the form family.size")
    if not word:
        raise ValueError("GpuName must not be empty")
    found = numbers.price(price, "OnDemandPerHour")
    if found is not None and not region:
        raise ValueError(f"OnDemandPerHour {price!r} in Region '' is not a price in a region")
    currency = "CNY" if region.startswith(_YUAN_REGIONS) else USD
    rate = into.rate(currency) if currency != USD else None
    is_known = found is None or currency == USD or rate is not None
    accelerator_mib = numbers.whole(gpu_memory or "0", "GpuMemoryMiB", least=0)
    vcpu_count = numbers.whole(vcpus, "vCPUs", least=1)
    efa_count = numbers.whole(efa or "0", "Efa", least=0)
    nvme_gb = numbers.whole(nvme or "0", "LocalNvmeGB", least=0)
    return Offering(
        cloud="aws",
        region=region,
        zone="",
        instance_type=instance_type,
        capacity_type=CapacityType.ON_DEMAND,
        accelerator=short_name(word, accelerator_mib),
        accelerator_count=numbers.whole(count, "GpuCount", least=0),
        vcpu_count=vcpu_count,
        memory_mib=numbers.whole(memory, "MemoryMiB", least=1),
        price_usd_per_hour=found if currency == USD else converted(found, rate),
        is_available=bool(region),
        unavailable_reason=None if region else "the list has no region and no price for it",
        currency=currency,
        price_in_currency_per_hour=found,
        price_source=source.at(line),
        priced_at=source.priced_at,
        accelerator_memory_mib=accelerator_mib or None,
        network_mbps=numbers.whole(network, "NetworkMbps", least=0) if network else None,
        nic_count=efa_count or None,
        local_nvme_gib=int(nvme_gb * _GIB_PER_GB) if nvme else None,
        interconnect="EFA" if efa_count else "",
        quotas=quotas.aws(instance_type, CapacityType.ON_DEMAND, vcpu_count),
        doubts=() if is_known else (f"no conversion rate for {currency} is known",),
    )
