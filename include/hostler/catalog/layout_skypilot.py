"""The columns of SkyPilot's lists: one row a type and place, or, for Google, hosts and accelerators apart."""

import re
from collections.abc import Callable
from typing import Final

from hostler.catalog import quotas
from hostler.catalog.cells import Cells, decimal_of
from hostler.catalog.errors import CatalogError
from hostler.catalog.gather import Gathering, Source, column_indexes
from hostler.catalog.layout_skypilot_google import GoogleParts
from hostler.catalog.names import short_name
from hostler.catalog.specs import MachineSpec, machine_specs
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering, QuotaUse

_NAMES: Final = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "SpotPrice", "Region")
COLUMNS: Final = frozenset(_NAMES)

_CLOUD_OF: Final = (
    (re.compile(r"Standard_\w+"), "azure"),
    (re.compile(r"\d+x-\S+"), "vast"),
    (re.compile(r"[a-z]+\d+[a-z]*-[a-z0-9-]+"), "gcp"),
    (re.compile(r"ecs\.\S+"), "alibaba"),
    (re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+"), "aws"),
)
"""How each cloud writes its types; the first that fits."""


def read_skypilot(cells: Cells, source: Source, into: Gathering) -> None:
    """Reads one list of this layout.

    A row with a type and an accelerator is a whole machine; one with either is Google's, whose parts stand apart.

    Raises:
        CatalogError: a row is broken and nothing may be.
    """
    at = column_indexes(cells, *_NAMES)
    zone_at, memory_at = _index(cells, "AvailabilityZone"), _index(cells, "TotalGpuMemoryMiB")
    fallback = "azure" if "Generation" in cells.heading else "vast"
    google = GoogleParts(source, into)
    for line, row in into.rows(cells):
        fields = [row[index] for index in at]
        zone = "" if zone_at is None else row[zone_at].strip()
        try:
            if zone_at is None or (fields[0].strip() and fields[1].strip() and not fields[1].startswith("tpu-")):
                memory = "" if memory_at is None else row[memory_at]
                _Machine(fields, zone, memory, fallback, into).offer(source, line, into)
            else:
                google.take(fields, zone, line)
        except ValueError as error:
            into.refuse(CatalogError(source.name, line, str(error)))
    google.join()


def _index(cells: Cells, name: str) -> int | None:
    return cells.heading.index(name) if name in cells.heading else None


class _Machine:
    """One row: a whole machine in a region, or in a zone of it."""

    def __init__(self, fields: list[str], zone: str, total_memory: str, fallback: str, into: Gathering) -> None:
        """Reads the cells. Raises ValueError naming the field."""
        self.instance_type, word, count, vcpus, memory, price, spot, region = fields
        numbers = into.numbers
        self.cloud = cloud_of(self.instance_type) or fallback
        self.region = _region(region)
        self.zone = zone
        self.vcpus = numbers.whole(vcpus, "vCPUs", least=1)
        self.memory_mib = numbers.mib(memory, "MemoryGiB")
        self.prices = (numbers.price(price, "Price"), numbers.price(spot, "SpotPrice"))
        if not self.instance_type.strip() or not word.strip():
            raise ValueError("InstanceType and AcceleratorName must not be empty")
        share = decimal_of(count)
        if share is None or share <= 0 or (share > 1 and share != share.to_integral_value()):
            raise ValueError(f"AcceleratorCount {count!r} is not a whole number or a part of one")
        self.count = int(share)
        self.spec = machine_specs().get((self.cloud, self.instance_type))
        self.accelerator_mib = _each_mib(total_memory, self.count, self.spec)
        self.accelerator = short_name(word.strip(), self.accelerator_mib or 0)
        if self.spec is not None:
            # The list counts one for some types that have a part of an accelerator; the maker's table tells.
            self.count = self.spec.accelerator_count

    def offer(self, source: Source, line: int, into: Gathering) -> None:
        """Adds an on-demand and a spot offering."""
        spec = self.spec
        for capacity_type, price in zip((CapacityType.ON_DEMAND, CapacityType.SPOT), self.prices, strict=True):
            into.offerings.append(
                Offering(
                    cloud=self.cloud,
                    region=self.region,
                    zone=self.zone,
                    instance_type=self.instance_type,
                    capacity_type=capacity_type,
                    accelerator=self.accelerator,
                    accelerator_count=self.count,
                    vcpu_count=self.vcpus,
                    memory_mib=self.memory_mib,
                    price_usd_per_hour=price,
                    price_in_currency_per_hour=price,
                    price_source=source.at(line),
                    priced_at=source.priced_at,
                    accelerator_memory_mib=self.accelerator_mib,
                    network_mbps=spec.network_mbps if spec else None,
                    nic_count=spec.nic_count if spec else None,
                    local_nvme_gib=spec.local_nvme_gib if spec else None,
                    interconnect=spec.interconnect if spec else "",
                    quotas=_quotas(self.cloud, self.instance_type, capacity_type, self.vcpus),
                )
            )


def cloud_of(instance_type: str) -> str | None:
    """Returns whose type this is by the way it is written; None when that tells nothing."""
    return next((cloud for pattern, cloud in _CLOUD_OF if pattern.fullmatch(instance_type)), None)


def _region(cell: str) -> str:
    """Returns the region; Vast's places (``, CA, NA``) may lack their first parts. Raises ValueError: it is empty."""
    if "," in cell:
        cell = ", ".join(part.strip() for part in cell.split(",") if part.strip())
    if not cell.strip():
        raise ValueError("Region must not be empty")
    return cell


def _each_mib(total: str, count: int, spec: MachineSpec | None) -> int | None:
    """Returns the memory of one accelerator: the list's, else the maker's; None when neither tells.

    Raises:
        ValueError: the list's is no number of 0 or more.
    """
    if total.strip():
        value = decimal_of(total)
        if value is None or value < 0:
            raise ValueError(f"TotalGpuMemoryMiB {total!r} is not a number of 0 or more")
        if value:
            return int(value / max(count, 1))
    return spec.accelerator_memory_mib if spec else None


_QUOTAS: Final[dict[str, Callable[[str, CapacityType, int], tuple[QuotaUse, ...]]]] = {
    "azure": quotas.azure,
    "aws": quotas.aws,
    "alibaba": quotas.alibaba,
}


def _quotas(cloud: str, instance_type: str, capacity_type: CapacityType, vcpus: int) -> tuple[QuotaUse, ...]:
    counted = _QUOTAS.get(cloud)
    return counted(instance_type, capacity_type, vcpus) if counted else ()
