"""Google's machine types with the whole machine's price by region: columns Region, InstanceType, OnDemand, Spot."""

from typing import Final

from hostler.catalog import quotas
from hostler.catalog.cells import Cells
from hostler.catalog.errors import CatalogError
from hostler.catalog.gather import Gathering, Source, column_indexes
from hostler.catalog.specs import machine_specs
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

COLUMNS: Final = frozenset({"Region", "InstanceType", "OnDemand", "Spot"})


def read_google_machines(cells: Cells, source: Source, into: Gathering) -> None:
    """Reads one list; types without accelerators are passed over. Raises CatalogError: a row is broken and nothing may be."""
    at = column_indexes(cells, "Region", "InstanceType", "OnDemand", "Spot")
    for line, row in into.rows(cells):
        try:
            _take([row[index].strip() for index in at], source, line, into)
        except ValueError as error:
            into.refuse(CatalogError(source.name, line, str(error)))


def _take(fields: list[str], source: Source, line: int, into: Gathering) -> None:
    region, instance_type, on_demand, spot = fields
    if not region or not instance_type:
        raise ValueError("Region and InstanceType must not be empty")
    prices = (into.numbers.price(on_demand, "OnDemand"), into.numbers.price(spot, "Spot"))
    spec = machine_specs().get(("gcp", instance_type))
    if spec is None:
        into.remarks.append(f"{source.at(line)}: {instance_type} is passed over: what it has is not known")
        return
    for capacity_type, price in zip((CapacityType.ON_DEMAND, CapacityType.SPOT), prices, strict=True):
        into.offerings.append(
            Offering(
                cloud="gcp",
                region=region,
                zone="",
                instance_type=instance_type,
                capacity_type=capacity_type,
                accelerator=spec.accelerator,
                accelerator_count=spec.accelerator_count,
                vcpu_count=spec.vcpu_count,
                memory_mib=spec.memory_mib,
                price_usd_per_hour=price,
                price_in_currency_per_hour=price,
                price_source=source.at(line),
                priced_at=source.priced_at,
                accelerator_memory_mib=spec.accelerator_memory_mib,
                network_mbps=spec.network_mbps,
                nic_count=spec.nic_count,
                local_nvme_gib=spec.local_nvme_gib,
                interconnect=spec.interconnect,
                quotas=quotas.google(spec, capacity_type, spec.vcpu_count),
            )
        )
