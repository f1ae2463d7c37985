"""What machines have that their price lists do not say. Tables of facts, each with its source in the file."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

from hostler.catalog.cells import Cells

MACHINES: Final = "machine_specs.csv"
TPUS: Final = "tpu_specs.csv"
ALIBABA_FAMILIES: Final = "alibaba_families.csv"

NO_INTERCONNECT: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec:
    """A machine type; see ``model.offering.Offering`` for the fields. ``accelerator_count`` 0: a part of one accelerator."""

    cloud: str
    instance_type: str
    accelerator: str
    accelerator_count: int
    accelerator_memory_mib: int | None
    vcpu_count: int
    memory_mib: int
    network_mbps: int | None
    nic_count: int | None
    local_nvme_gib: int | None
    interconnect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuSpec:
    """A TPU version.

    Attributes:
        counted_per_chip: how many of what a slice's name counts are on one chip: 2 (cores) or 1 (chips).
        hbm_mib: of one chip. chips_per_host: of a slice of several hosts. quota_unit: ``core`` or ``chip``.
    """

    version: str
    accelerator: str
    counted_per_chip: int
    hbm_mib: int
    chips_per_host: int
    host_vcpus: int
    host_memory_gib: int
    quota_name: str
    quota_unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlibabaFamily:
    """What an instance family has. ``is_share``: a part of one accelerator, whatever the price list counts."""

    accelerator: str
    accelerator_memory_mib: int | None
    is_share: bool


@lru_cache(maxsize=1)
def machine_specs() -> Mapping[tuple[str, str], MachineSpec]:
    """Returns the table by (cloud, instance type). Raises CatalogError or ValueError: the installed file is damaged."""
    return {(row["Cloud"], row["InstanceType"]): _machine(row) for row in _table(MACHINES)}


@lru_cache(maxsize=1)
def tpu_specs() -> Mapping[str, TpuSpec]:
    """Returns the TPU versions, as slices name them (``v5litepod``), with their facts."""
    return {
        row["Version"]: TpuSpec(
            version=row["Version"],
            accelerator=row["Accelerator"],
            counted_per_chip=int(row["CountedPerChip"]),
            hbm_mib=int(row["HbmMiB"]),
            chips_per_host=int(row["ChipsPerHost"]),
            host_vcpus=int(row["HostVcpus"]),
            host_memory_gib=int(row["HostMemoryGiB"]),
            quota_name=row["QuotaName"],
            quota_unit=row["QuotaUnit"],
        )
        for row in _table(TPUS)
    }


@lru_cache(maxsize=1)
def alibaba_families() -> Mapping[str, AlibabaFamily]:
    """Returns the families (``gn7i``) with their accelerators."""
    return {
        row["Family"]: AlibabaFamily(
            accelerator=row["Accelerator"],
            accelerator_memory_mib=_number(row["AcceleratorMemoryMiB"]),
            is_share=row["Share"] == "1",
        )
        for row in _table(ALIBABA_FAMILIES)
    }


def _machine(row: Mapping[str, str]) -> MachineSpec:
    return MachineSpec(
        cloud=row["Cloud"],
        instance_type=row["InstanceType"],
        accelerator=row["Accelerator"],
        accelerator_count=int(row["AcceleratorCount"]),
        accelerator_memory_mib=_number(row["AcceleratorMemoryMiB"]),
        vcpu_count=int(row["vCPUs"]),
        memory_mib=int(row["MemoryGiB"]) * 1024,
        network_mbps=_number(row["NetworkMbps"]),
        nic_count=_number(row["Nics"]),
        local_nvme_gib=_number(row["LocalNvmeGiB"]),
        interconnect=row["Interconnect"] or NO_INTERCONNECT,
    )


def _number(cell: str) -> int | None:
    return int(cell) if cell else None


def _table(name: str) -> list[dict[str, str]]:
    cells = Cells(files("hostler.catalog").joinpath("data", name).read_text(encoding="utf-8"), name)
    return [dict(zip(cells.heading, row, strict=True)) for _, row in cells]
