"""Checks of an accelerator's memory: ECC, repairs, remapped rows, retired pages (pure)."""

from typing import Final

from hostler.health.catalog import LIMITS
from hostler.health.finding import broken, degraded, failed, needed, unknown
from hostler.health.reading import AcceleratorReading, Expectation
from hostler.model.enums import HealthAction
from hostler.model.health import Finding

_NVML: Final = "nvml.h"
SRAM_FLAG_DRIVER: Final = 555
"""First driver branch whose nvidia-smi tells whether the SRAM threshold is exceeded. Source: captures of 535 (no) and 575 (yes)."""


def check_ecc(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Judges ECC mode and error counts."""
    if reading.is_ecc_enabled is False:
        if reading.is_workstation:
            return []
        return [degraded("ecc.disabled", "ECC is off", "ECC mode: disabled", "NVIDIA/DCGM, DCGM_FR_ECC_DISABLED")]
    has_none = reading.is_workstation and not reading.is_ecc_enabled
    findings = _volatile(reading, has_none=has_none)
    if reading.is_ecc_pending is not None and reading.is_ecc_pending != reading.is_ecc_enabled and not has_none:
        words = "the ECC mode changes with the next reboot"
        findings.append(degraded("ecc.mode_pending", words, "pending ECC mode differs", "NVIDIA/DCGM, DCGM_FR_ECC_PENDING"))
    findings += _aggregate(reading, has_none=has_none)
    return findings + _corrected(reading)


def _volatile(reading: AcceleratorReading, *, has_none: bool) -> list[Finding]:
    count = reading.ecc_volatile_uncorrectable_count
    if count is None:
        return [] if has_none else needed(reading, "ecc_volatile_uncorrectable_count")
    limit = broken("ecc_volatile_uncorrectable_count", count)
    if limit is None:
        return []
    what = f"{count} volatile uncorrectable ECC errors, limit {limit.value:.0f}"
    return [failed("ecc.volatile_uncorrectable", what, HealthAction.RESET_GPU, what, limit.source)]


def _aggregate(reading: AcceleratorReading, *, has_none: bool) -> list[Finding]:
    count = reading.ecc_aggregate_uncorrectable_count or 0
    if reading.is_sram_threshold_exceeded:
        what = f"SRAM error threshold exceeded ({count} uncorrectable ECC errors in its life): replace"
        source = f"{_NVML}, nvmlEccSramErrorStatus_t.bThresholdExceeded"
        return [failed("ecc.sram_threshold", what, HealthAction.DRAIN_AND_REPLACE, what, source)]
    limit = broken("ecc_aggregate_uncorrectable_count", count)
    if reading.is_sram_threshold_exceeded is None and limit is not None:
        what = f"{count} uncorrectable ECC errors in its life, limit {limit.value:.0f}"
        return [degraded("ecc.aggregate_uncorrectable", what, what, limit.source)]
    tells_flag = (reading.driver_major or 0) >= SRAM_FLAG_DRIVER
    if reading.is_sram_threshold_exceeded is None and tells_flag and not has_none and not reading.retires_pages:
        return needed(reading, "is_sram_threshold_exceeded")
    return []


def _corrected(reading: AcceleratorReading) -> list[Finding]:
    findings = []
    for field, name, words in (
        ("ecc_sram_correctable_count", "sram_correctable_count", "correctable SRAM errors"),
        ("ecc_dram_correctable_count", "dram_error_count", "correctable DRAM errors"),
    ):
        count: int | None = getattr(reading, field)
        limit = broken(name, count) if count is not None else None
        if limit is not None:
            what = f"{count} {words}, limit {limit.value:.0f}"
            findings.append(degraded(f"ecc.{name}", what, what, limit.source))
    return findings


def check_memory_size(reading: AcceleratorReading, expectation: Expectation) -> list[Finding]:
    """Judges whether all the memory that was bought is there."""
    total, expected = reading.memory_total_mib, expectation.memory_mib
    tolerance = LIMITS["memory_tolerance_ratio"]
    if total is None or expected is None or total >= expected * (1 - tolerance.value):
        return []
    what = f"{total:.0f} MiB of memory, {expected} MiB expected"
    return [degraded("memory.short", what, what, tolerance.source, HealthAction.DRAIN_AND_DIAG)]


def check_repairs(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Judges what newer drivers tell of repairs: pending ones need a reset, memory beyond repair a new device."""
    findings = []
    source = "nvidia-smi manual, ECC Errors"
    if reading.is_memory_unrepairable:
        what = "the memory cannot be repaired: replace"
        findings.append(failed("memory.unrepairable", what, HealthAction.DRAIN_AND_REPLACE, what, source))
    pending = [
        name
        for name, is_pending in (("channel", reading.is_channel_repair_pending), ("TPC", reading.is_tpc_repair_pending))
        if is_pending
    ]
    if pending:
        what = f"a {' and a '.join(pending)} repair is pending: reset the GPU before it gets work"
        findings.append(failed("memory.repair_pending", what, HealthAction.RESET_GPU, what, source))
    return findings


def check_remapped_rows(reading: AcceleratorReading, expectation: Expectation) -> list[Finding]:
    """Judges row remapping. A pending remap is failed, not degraded: no new job before the reset.

    While MIG instances are active the counts are not to be had: unknown, not healthy.
    """
    applies = expectation.remaps_rows
    if applies is None:
        applies = not reading.is_workstation and not reading.retires_pages
    findings: list[Finding] = []
    if reading.is_remap_pending:
        what = "a row remap is pending: reset the GPU before it gets work"
        findings.append(failed("rows.remap_pending", what, HealthAction.RESET_GPU, what, "NVIDIA GPU memory error management"))
    elif reading.is_remap_pending is None and applies:
        findings += needed(reading, "is_remap_pending")
    if reading.has_remap_failed:
        what = "a row remap has failed: replace"
        source = "NVIDIA GPU memory error management"
        findings.append(failed("rows.remap_failed", what, HealthAction.DRAIN_AND_REPLACE, what, source))
    elif reading.has_remap_failed is None and applies:
        findings += needed(reading, "has_remap_failed")
    return findings + _spare_rows(reading, applies=applies)


def _spare_rows(reading: AcceleratorReading, *, applies: bool) -> list[Finding]:
    count = reading.remapped_uncorrectable_count
    if count is None and applies and reading.is_remap_pending is not None:
        return needed(reading, "remapped_uncorrectable_count")
    limit = broken("remapped_uncorrectable_count", count) if count is not None else None
    if limit is not None:
        what = f"{count} rows remapped after uncorrectable errors, limit {limit.value:.0f}"
        return [failed("rows.remapped", what, HealthAction.DRAIN_AND_REPLACE, what, limit.source)]
    histogram = "nvml.h, nvmlRowRemapperHistogramValues_t"
    if reading.remap_banks_none_count:
        what = f"{reading.remap_banks_none_count} memory banks have no spare row left: replace"
        return [failed("rows.banks_none", what, HealthAction.DRAIN_AND_REPLACE, what, histogram)]
    if applies and reading.is_remap_pending is not None and "remap_banks_none_count" in reading.missing:
        reason = reading.missing["remap_banks_none_count"]
        if reason != NOT_REPORTED or reading.remap_banks_low_count is not None:  # older drivers have no histogram at all
            return [unknown("reading.remap_banks_none_count", f"spare rows could not be read: {reason}")]
    if reading.remap_banks_low_count:
        what = f"{reading.remap_banks_low_count} memory banks have few spare rows left"
        return [degraded("rows.banks_low", what, what, histogram)]
    return []


NOT_REPORTED: Final = "not reported"
"""The reason when a document has no such field at all."""


def check_retired_pages(reading: AcceleratorReading, expectation: Expectation) -> list[Finding]:
    """Judges page retirement, which GPUs older than Ampere have in place of row remapping."""
    single, double = reading.retired_single_count, reading.retired_double_count
    findings: list[Finding] = []
    is_expected = expectation.remaps_rows is None and reading.retires_pages and not reading.is_workstation
    if is_expected:
        for field in ("retired_single_count", "retired_double_count", "is_retirement_pending"):
            if getattr(reading, field) is None:
                findings += needed(reading, field)
    total = (single or 0) + (double or 0)
    most, soft = broken("retired_pages_count", total), broken("retired_pages_double_bit_count", double or 0)
    if most is not None:
        what = f"{total} memory pages retired, {most.value:.0f} are too many: replace"
        findings.append(failed("pages.too_many", what, HealthAction.DRAIN_AND_REPLACE, what, most.source))
    elif soft is not None:
        what = f"{double} memory pages retired after double-bit errors, limit {soft.value:.0f}"
        findings.append(degraded("pages.double_bit", what, what, soft.source, HealthAction.DRAIN_AND_DIAG))
    if reading.is_retirement_pending:
        what = "memory pages wait for retirement: reboot before it gets work"
        evidence = f"{double} double-bit, {single} single-bit pages, retirement pending"
        if double == 0:  # after single-bit errors alone the data is still right
            findings.append(
                degraded("pages.pending", what, evidence, "NVIDIA dynamic page retirement", HealthAction.REBOOT_NODE)
            )
        else:
            findings.append(failed("pages.pending", what, HealthAction.REBOOT_NODE, evidence, "NVIDIA dynamic page retirement"))
    return findings
