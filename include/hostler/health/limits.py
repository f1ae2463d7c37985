"""Thresholds of the first verdict, as data with source and date."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One threshold: its value, where it comes from, and when that was read."""

    value: float
    source: str
    read_on: str


LIMITS: Final[dict[str, Limit]] = {
    "ecc_volatile_uncorrectable_count": Limit(
        value=0, source="Azure/azurehpc-health-checks, GPU ECC check", read_on="2026-12-01"
    ),
    "ecc_aggregate_uncorrectable_count": Limit(
        value=0, source="Azure/azurehpc-health-checks; NVML's threshold flag goes first where it is told", read_on="2026-12-01"
    ),
    "remapped_uncorrectable_count": Limit(
        value=512, source="Azure/azurehpc-health-checks, spare rows of an A100", read_on="2026-12-01"
    ),
    "sram_correctable_count": Limit(
        value=10_000, source="Azure/azurehpc-health-checks, argument of its SRAM check", read_on="2026-12-01"
    ),
    "dram_error_count": Limit(
        value=20_000_000, source="Azure/azurehpc-health-checks; weak: a rate tells more", read_on="2026-12-01"
    ),
    "retired_pages_count": Limit(
        value=63, source="NVIDIA/DCGM dcgm_gpu_hardware_limits.h: 60 in older ones; this many is bad", read_on="2026-12-01"
    ),
    "retired_pages_double_bit_count": Limit(
        value=15, source="NVIDIA/DCGM dcgm_gpu_hardware_limits.h, soft limit", read_on="2026-12-01"
    ),
    "temperature_c": Limit(value=85, source="ours: warn; the slowdown limit itself is the device's own", read_on="2026-12-01"),
    "busy_utilisation_ratio": Limit(value=0.5, source="ours: an idle PCIe link downshifts by design", read_on="2026-12-01"),
    "document_age_s": Limit(value=600, source="ours", read_on="2026-12-01"),
}
"""Reading -> the highest value that is still good (temperature: the lowest that is not; busy: the lowest that counts)."""

BAD_THROTTLE_BITS: Final = 0xE8
"""The other bits (idle, set clocks, power cap, sync boost, display) are normal. Source: Azure/azurehpc-health-checks."""

THROTTLE_REASONS: Final[dict[int, str]] = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Source: nvml.h, nvmlClocksEventReasons constants, read 2026-12-01."""

NVLINK_ACCELERATORS: Final = frozenset({"A100", "A100-80GB", "B200", "B300", "H100", "H200", "V100", "V100-32GB"})
"""Sold with NVLink between the accelerators of one node. Source: EC2 instance types p3, p4, p5, p6, read 2026-12-01."""

ROW_REMAP_ACCELERATORS: Final = frozenset({"A100", "A100-80GB", "A10G", "B200", "B300", "H100", "H200", "L4", "L40S"})
"""Ampere and newer remap rows; older ones retire pages. Source: NVIDIA GPU memory error management, read 2026-12-01."""

ERROR_WORDS: Final[dict[str, str]] = {
    "version mismatch": "driver and library differ: running jobs go on, new ones fail; drain, then reboot",
    "lib_rm_version_mismatch": "driver and library differ: running jobs go on, new ones fail; drain, then reboot",
    "communicate with the nvidia driver": "the driver is not loaded: repeat setup once, else replace the node",
    "nvidia-smi: no such file": "the driver is not installed: repeat setup once, else replace the node",
    "driver not loaded": "the driver is not loaded: repeat setup once, else replace the node",
    "gpu is lost": "an accelerator is lost: reboot or replace the node",
}
"""Words of NVML and nvidia-smi (lower case) that by themselves prove a node unfit. Other words mean unknown.

Source: NVML error strings; lyulyul/shine-cluster#30 and #50, JosephKJ/OWOD#81, read 2026-12-01.
"""
