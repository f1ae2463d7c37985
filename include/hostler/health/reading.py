"""What one accelerator says of itself, in one shape for every source (pure)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

_WORKSTATION: Final = re.compile(
    r"geforce|\bgtx\b|titan|quadro|\brtx\b|\bnvs\b|\bgrid\b|\bmx\d|\bt\d{3,4}\b|virtual workstation", re.IGNORECASE
)
_BEFORE_AMPERE: Final = re.compile(r"kepler|maxwell|pascal|volta|turing|fermi|(tesla |nvidia |^)[kmpvt]\d+", re.IGNORECASE)


@lru_cache(maxsize=1024)
def _is_workstation(words: str) -> bool:
    return bool(_WORKSTATION.search(words))


@lru_cache(maxsize=1024)
def _is_before_ampere(words: str) -> bool:
    return bool(_BEFORE_AMPERE.search(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorReading:
    """The readings of one accelerator at one time.

    A reading that is None was either not asked for, or asked for and not to be had: then its name stands in ``missing`` with the
    device's own words. Counts are of the device's life where the name says ``aggregate``, of this boot where it says ``volatile``.

    Attributes:
        error: the device's own error text when it could not be read as a whole.
        utilisation_ratio: 0 to 1. throttle_mask: bits of nvmlClocksEventReasons.
        temperature_margin_c: degrees left to the device's limit (T.Limit); its own thresholds are margins too.
        remap_banks_none_count: memory banks without a spare row left; ``low``: with few.
        fabric_health: words of the fabric's health fields that are not good; empty when all are good.
        driver_major: first number of the driver's version, which says what it can tell; None when not known.
    """

    index: int | None = None
    pci: str | None = None
    uuid: str | None = None
    name: str | None = None
    brand: str | None = None
    architecture: str | None = None
    virtualisation: str | None = None
    driver_major: int | None = None
    error: str | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    temperature_c: float | None = None
    temperature_margin_c: float | None = None
    temperature_max_operating_c: float | None = None
    temperature_slowdown_c: float | None = None
    temperature_slowdown_margin_c: float | None = None
    memory_temperature_c: float | None = None
    memory_temperature_max_c: float | None = None
    utilisation_ratio: float | None = None
    throttle_mask: int | None = None
    is_ecc_enabled: bool | None = None
    is_ecc_pending: bool | None = None
    ecc_volatile_uncorrectable_count: int | None = None
    ecc_aggregate_uncorrectable_count: int | None = None
    ecc_sram_correctable_count: int | None = None
    ecc_dram_correctable_count: int | None = None
    is_sram_threshold_exceeded: bool | None = None
    is_channel_repair_pending: bool | None = None
    is_tpc_repair_pending: bool | None = None
    is_memory_unrepairable: bool | None = None
    remapped_correctable_count: int | None = None
    remapped_uncorrectable_count: int | None = None
    is_remap_pending: bool | None = None
    has_remap_failed: bool | None = None
    remap_banks_none_count: int | None = None
    remap_banks_low_count: int | None = None
    retired_single_count: int | None = None
    retired_double_count: int | None = None
    is_retirement_pending: bool | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replay_count: int | None = None
    nvlink_active_count: int | None = None
    nvlink_count: int | None = None
    is_persistent: bool | None = None
    is_mig_enabled: bool | None = None
    is_mig_pending: bool | None = None
    mig_instance_count: int | None = None
    recovery_action: str | None = None
    is_reset_required: bool | None = None
    is_drain_recommended: bool | None = None
    is_inforom_valid: bool | None = None
    fabric_state: str | None = None
    fabric_status: str | None = None
    fabric_health: str | None = None
    power_draw_w: float | None = None
    power_limit_w: float | None = None
    power_default_limit_w: float | None = None
    fan_ratio: float | None = None
    clock_sm_mhz: float | None = None
    clock_sm_max_mhz: float | None = None
    performance_state: str | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    process_count: int | None = None

    @property
    def is_workstation(self) -> bool:
        """Whether it is a card of a desk or of a virtual desk: what it does not tell of ECC and rows does not apply to it."""
        return _is_workstation(f"{self.name or ''} {self.brand or ''}")

    @property
    def retires_pages(self) -> bool:
        """Whether it is older than Ampere, which retires pages of memory; newer ones remap rows."""
        known = self.architecture if self.architecture and self.architecture.upper() != "N/A" else None
        return _is_before_ampere(known or self.name or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What must be true of an accelerator beyond its own readings. None or False: nothing is expected.

    Attributes:
        names: lower-case spellings of the name it was bought with, and in ``accelerator`` the short one.
        remaps_rows: it must tell of remapped rows; None: derived from its name.
        has_nvlink: it must have NVLinks, all active. is_persistent: persistence mode must be on.
        memory_mib: what the device tells of a whole one.
    """

    accelerator: str | None = None
    names: tuple[str, ...] = ()
    remaps_rows: bool | None = None
    has_nvlink: bool = False
    is_persistent: bool = False
    memory_mib: int | None = None


CAPTURED: Final = Expectation()
"""Of a captured output of which nothing else is known."""
