"""Facts of accelerators that nodes are given, as NVML and ``nvidia-smi`` report them on a healthy idle machine.

Source: nvidia-smi captures of an A10G (driver 515), an A100-SXM4-80GB (535), an H100 80GB HBM3 (590) and an L40S (595); PCI ids
from https://pci-ids.ucw.cz/read/PC/10de; NVLink counts and power limits from NVIDIA's data sheets. Values no capture shows
(B200, B300, T4G: idle power, thresholds) are from data sheets or the nearest sibling.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator model. ``has_row_remap``: Ampere and later remap rows; older ones retire pages.

    ``has_margin``: the driver tells the distance to the limit, not the limits.
    """

    name: str
    architecture: str
    brand: str
    pci_id: str
    memory_mib: int
    power_limit_watts: int
    idle_watts: float
    sm_clock_mhz: int
    memory_clock_mhz: int
    pcie_gen: int
    slowdown_c: int
    shutdown_c: int
    nvlinks: int = 0
    nvlink_gb_per_s: float = 0.0
    nvlink_version: int = 0
    has_mig: bool = False
    has_row_remap: bool = True
    has_margin: bool = False
    needs_fabric: bool = False


def _device(name: str, architecture: str, pci_id: str, memory_mib: int, watts: int, clocks: tuple[int, int], gen: int,  # noqa: PLR0917
            links: tuple[int, float, int] = (0, 0.0, 0), **more: bool) -> Device:  # fmt: skip
    return Device(
        name=name, architecture=architecture, brand="NVIDIA" if not name.startswith("Tesla") else "Tesla", pci_id=pci_id,
        memory_mib=memory_mib, power_limit_watts=watts, idle_watts=round(watts * 0.1, 2), sm_clock_mhz=clocks[0],
        memory_clock_mhz=clocks[1], pcie_gen=gen, slowdown_c=89, shutdown_c=92, nvlinks=links[0], nvlink_gb_per_s=links[1],
        nvlink_version=links[2], has_margin=architecture in {"Ada Lovelace", "Hopper", "Blackwell"}, **more,
    )  # fmt: skip


DEVICES: Final[dict[str, Device]] = {
    "A10G": _device("NVIDIA A10G", "Ampere", "2237", 23028, 300, (1710, 6251), 4),
    "A100": _device(
        "NVIDIA A100-SXM4-40GB", "Ampere", "20b0", 40960, 400, (1410, 1215), 4, (12, 25.0, 3), has_mig=True, needs_fabric=True
    ),
    "A100-80GB": _device(
        "NVIDIA A100-SXM4-80GB", "Ampere", "20b2", 81920, 400, (1410, 1593), 4, (12, 25.0, 3), has_mig=True, needs_fabric=True
    ),
    "H100": _device(
        "NVIDIA H100 80GB HBM3", "Hopper", "2330", 81559, 700, (1980, 2619), 5, (18, 26.562, 4), has_mig=True, needs_fabric=True
    ),
    "H200": _device(
        "NVIDIA H200", "Hopper", "2335", 143771, 700, (1980, 3201), 5, (18, 26.562, 4), has_mig=True, needs_fabric=True
    ),
    "B200": _device(
        "NVIDIA B200", "Blackwell", "2901", 183359, 1000, (1965, 3996), 5, (18, 53.125, 5), has_mig=True, needs_fabric=True
    ),
    "B300": _device(
        "NVIDIA B300", "Blackwell", "3182", 275040, 1100, (2032, 3996), 6, (18, 53.125, 5), has_mig=True, needs_fabric=True
    ),
    "L4": _device("NVIDIA L4", "Ada Lovelace", "27b8", 23034, 72, (2040, 6251), 4),
    "L40S": _device("NVIDIA L40S", "Ada Lovelace", "26b9", 46068, 350, (2520, 9001), 4),
    "T4": _device("Tesla T4", "Turing", "1eb8", 15360, 70, (1590, 5001), 3, has_row_remap=False),
    "T4G": _device("NVIDIA T4G", "Turing", "1eb4", 15360, 70, (1590, 5001), 3, has_row_remap=False),
    "V100": _device("Tesla V100-SXM2-16GB", "Volta", "1db1", 16384, 300, (1530, 877), 3, (6, 25.781, 2), has_row_remap=False),
    "V100-32GB": _device(
        "Tesla V100-SXM2-32GB", "Volta", "1db5", 32768, 300, (1530, 877), 3, (6, 25.781, 2), has_row_remap=False
    ),
}
"""Catalogue name -> device."""

_LARGER_MEMORY: Final = {"p4de": ("A100", "A100-80GB"), "p3dn": ("V100", "V100-32GB")}
"""Instance families whose accelerator the cloud prints by the name of the smaller one. Source: EC2 DescribeInstanceTypes."""


def device_of(printed: str, instance_type: str) -> Device:
    """Returns the device for a name as the cloud prints it. Raises KeyError for one that is not known."""
    name = next((known for known in DEVICES if known.lower() == printed.lower()), printed)
    smaller, larger = _LARGER_MEMORY.get(instance_type.partition(".")[0], ("", ""))
    return DEVICES[larger if name == smaller else name]
