"""How nvidia-smi spells each reading: in its XML, its plain query, its CSV columns (data), and how a value is read (pure).

A spelling is a path of lower-case names. The first that is there is read; where none is there the reading is ``not reported``
(or, of CSV, not asked for).
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from hostler.health.checks_memory import NOT_REPORTED

Form = Literal["xml", "text", "csv"]
Values = Mapping[str, str]

_L = "pci/pci_gpu_link_info/"
_G = "pci/gpu link info/"
_Kind = Literal["text", "int", "number", "ratio", "flag", "good"]

FIELDS: Final[dict[str, tuple[_Kind, tuple[str, ...], tuple[str, ...], tuple[str, ...]]]] = {
    "uuid": ("text", ("uuid",), ("gpu uuid",), ("uuid", "gpu_uuid")),
    "name": ("text", ("product_name",), ("product name",), ("name", "gpu_name")),
    "brand": ("text", ("product_brand",), ("product brand",), ()),
    "architecture": ("text", ("product_architecture",), ("product architecture",), ()),
    "virtualisation": ("text", ("gpu_virtualization_mode/virtualization_mode",), ("gpu virtualization mode/virtualization mode",), ()),
    "temperature_c": ("number", ("temperature/gpu_temp",), ("temperature/gpu current temp", "temperature/gpu"), ("temperature.gpu",)),
    "temperature_margin_c": (
        "number", ("temperature/gpu_temp_tlimit",), ("temperature/gpu t.limit temp",), ("temperature.gpu.tlimit",)),
    "temperature_max_operating_c": (
        "number", ("temperature/gpu_temp_max_gpu_threshold",), ("temperature/gpu max operating temp",), ()),
    "temperature_slowdown_c": ("number", ("temperature/gpu_temp_slow_threshold",), ("temperature/gpu slowdown temp",), ()),
    "temperature_slowdown_margin_c": (
        "number", ("temperature/gpu_temp_slow_tlimit_threshold",), ("temperature/gpu slowdown t.limit temp",), ()),
    "memory_temperature_c": ("number", ("temperature/memory_temp",), ("temperature/memory current temp",), ("thermal.memory",)),
    "memory_temperature_max_c": (
        "number", ("temperature/gpu_temp_max_mem_threshold",), ("temperature/memory max operating temp",), ()),
    "utilisation_ratio": ("ratio", ("utilization/gpu_util",), ("utilization/gpu",), ("utilization.gpu",)),
    "is_ecc_enabled": ("flag", ("ecc_mode/current_ecc",), ("ecc mode/current",), ("ecc.mode.current",)),
    "is_ecc_pending": ("flag", ("ecc_mode/pending_ecc",), ("ecc mode/pending",), ("ecc.mode.pending",)),
    "is_sram_threshold_exceeded": (
        "flag", ("ecc_errors/aggregate/sram_threshold_exceeded",), ("ecc errors/aggregate/sram threshold exceeded",),
        ("ecc.errors.uncorrected.aggregate.sram.thresholdexceeded",)),
    "is_channel_repair_pending": ("flag", ("ecc_errors/channel_repair_pending",), ("ecc errors/channel repair pending",), ()),
    "is_tpc_repair_pending": ("flag", ("ecc_errors/tpc_repair_pending",), ("ecc errors/tpc repair pending",), ()),
    "is_memory_unrepairable": ("flag", ("ecc_errors/unrepairable_memory",), ("ecc errors/unrepairable memory",), ()),
    "ecc_sram_correctable_count": (
        "int", ("ecc_errors/aggregate/sram_correctable",), ("ecc errors/aggregate/sram correctable",),
        ("ecc.errors.corrected.aggregate.sram",)),
    "ecc_dram_correctable_count": (
        "int", ("ecc_errors/aggregate/dram_correctable",), ("ecc errors/aggregate/dram correctable",),
        ("ecc.errors.corrected.aggregate.dram",)),
    "remapped_correctable_count": (
        "int", ("remapped_rows/remapped_row_corr", "remapped_rows"), ("remapped rows/correctable error", "remapped rows"),
        ("remapped_rows.correctable",)),
    "remapped_uncorrectable_count": (
        "int", ("remapped_rows/remapped_row_unc", "remapped_rows"), ("remapped rows/uncorrectable error", "remapped rows"),
        ("remapped_rows.uncorrectable",)),
    "is_remap_pending": (
        "flag", ("remapped_rows/remapped_row_pending", "remapped_rows"), ("remapped rows/pending", "remapped rows"),
        ("remapped_rows.pending",)),
    "has_remap_failed": (
        "flag", ("remapped_rows/remapped_row_failure", "remapped_rows"),
        ("remapped rows/remapping failure occurred", "remapped rows"), ("remapped_rows.failure",)),
    "remap_banks_none_count": (
        "int", ("remapped_rows/row_remapper_histogram/row_remapper_histogram_none",),
        ("remapped rows/bank remap availability histogram/none",), ("remapped_rows.histogram.none",)),
    "remap_banks_low_count": (
        "int", ("remapped_rows/row_remapper_histogram/row_remapper_histogram_low",),
        ("remapped rows/bank remap availability histogram/low",), ("remapped_rows.histogram.low",)),
    "retired_single_count": (
        "int", ("retired_pages/multiple_single_bit_retirement/retired_count",), ("retired pages/single bit ecc",),
        ("retired_pages.single_bit_ecc.count", "retired_pages.sbe")),
    "retired_double_count": (
        "int", ("retired_pages/double_bit_retirement/retired_count",), ("retired pages/double bit ecc",),
        ("retired_pages.double_bit.count", "retired_pages.dbe")),
    "is_retirement_pending": (
        "flag", ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
        ("retired pages/pending page retirement", "retired pages/pending page blacklist", "retired pages/pending"),
        ("retired_pages.pending",)),
    "pcie_generation": ("int", (_L + "pcie_gen/current_link_gen",), (_G + "pcie generation/current",), ("pcie.link.gen.current",)),
    "pcie_generation_max": ("int", (_L + "pcie_gen/max_link_gen",), (_G + "pcie generation/max",), ("pcie.link.gen.max",)),
    "pcie_width": (
        "int", (_L + "link_widths/current_link_width",), (_G + "link width/current",), ("pcie.link.width.current",)),
    "pcie_width_max": ("int", (_L + "link_widths/max_link_width",), (_G + "link width/max",), ("pcie.link.width.max",)),
    "pcie_replay_count": ("int", ("pci/replay_counter",), ("pci/replays since reset",), ()),
    "is_persistent": ("flag", ("persistence_mode",), ("persistence mode",), ("persistence_mode",)),
    "is_mig_enabled": ("flag", ("mig_mode/current_mig",), ("mig mode/current",), ("mig.mode.current",)),
    "is_mig_pending": ("flag", ("mig_mode/pending_mig",), ("mig mode/pending",), ("mig.mode.pending",)),
    "recovery_action": ("text", ("gpu_recovery_action",), ("gpu recovery action",), ("gpu_recovery_action",)),
    "is_reset_required": (
        "flag", ("gpu_reset_status/reset_required",), ("gpu reset status/reset required",), ("reset_status.reset_required",)),
    "is_drain_recommended": (
        "flag", ("gpu_reset_status/drain_and_reset_recommended",), ("gpu reset status/drain and reset recommended",),
        ("reset_status.drain_and_reset_recommended",)),
    "is_inforom_valid": ("good", (), (), ("inforom.checksum_validation",)),
    "fabric_state": ("text", ("fabric/state",), ("fabric/state",), ("fabric.state",)),
    "fabric_status": ("text", ("fabric/status",), ("fabric/status",), ("fabric.status",)),
    "power_draw_w": (
        "number", ("gpu_power_readings/instant_power_draw", "gpu_power_readings/average_power_draw",
                   "gpu_power_readings/power_draw", "power_readings/power_draw"),
        ("gpu power readings/instantaneous power draw", "gpu power readings/average power draw",
         "gpu power readings/power draw", "power readings/power draw"),
        ("power.draw", "power.draw.instant", "power.draw.average")),
    "power_limit_w": (
        "number", ("gpu_power_readings/current_power_limit", "power_readings/power_limit"),
        ("gpu power readings/current power limit", "power readings/power limit"), ("power.limit",)),
    "power_default_limit_w": (
        "number", ("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
        ("gpu power readings/default power limit", "power readings/default power limit"), ("power.default_limit",)),
    "fan_ratio": ("ratio", ("fan_speed",), ("fan speed",), ("fan.speed",)),
    "clock_sm_mhz": ("number", ("clocks/sm_clock",), ("clocks/sm",), ("clocks.current.sm", "clocks.sm")),
    "clock_sm_max_mhz": ("number", ("max_clocks/sm_clock",), ("max clocks/sm",), ("clocks.max.sm",)),
    "performance_state": ("text", ("performance_state",), ("performance state",), ("pstate",)),
    "memory_used_mib": ("number", ("fb_memory_usage/used",), ("fb memory usage/used",), ("memory.used",)),
    "memory_total_mib": ("number", ("fb_memory_usage/total",), ("fb memory usage/total",), ("memory.total",)),
}  # fmt: skip
"""Reading -> kind, and its spellings in XML, plain query and CSV. Source: captures of drivers 325 to 610."""

_SPELLINGS: Final[dict[Form, tuple[tuple[str, str, tuple[str, ...]], ...]]] = {
    "xml": tuple((field, row[0], row[1]) for field, row in FIELDS.items()),
    "text": tuple((field, row[0], row[2]) for field, row in FIELDS.items()),
    "csv": tuple((field, row[0], row[3]) for field, row in FIELDS.items()),
}
_NUMBER: Final = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:[a-zA-Z%/]+(?:\(s\))?)?$")
_EMPTY: Final = frozenset({
    "", "n/a", "[n/a]", "none", "[none]", "not supported", "[not supported]", "not available", "[not available]",
    "requested functionality has been deprecated", "[requested functionality has been deprecated]", "-",
})  # fmt: skip
_YES: Final = frozenset({"enabled", "yes", "active", "on", "valid", "1"})
_NO: Final = frozenset({"disabled", "no", "not active", "off", "invalid", "0"})
_NO_TEXT: Final = _EMPTY - {"none", "[none]"}
MOST: Final = 2**63
MOST_DIGITS: Final = 15


def convert(kind: str, raw: str) -> tuple[Any, str | None]:
    """Returns value and None, or None and why there is no value: the device's own words."""
    word = raw.strip()
    if kind == "text":
        is_none = word.lower() in _NO_TEXT or (word[:1] == "[" and word[-1:] == "]")  # such as [GPU is lost]
        return (None, word or NOT_REPORTED) if is_none else (word, None)
    lower = word.lower()
    if kind in {"flag", "good"}:
        if lower in _YES:
            return True, None
        return (False, None) if lower in _NO else (None, word or NOT_REPORTED)
    number = number_of(word)
    if number is None:
        return None, word or NOT_REPORTED
    if kind == "int":
        return int(number), None
    return (number / 100 if kind == "ratio" else number), None


def number_of(word: str) -> float | None:
    """Returns the number of ``27 C``, ``16x``, ``4000 KB/s``, ``192 bank(s)``; None for anything else."""
    found = _NUMBER.match(word)
    if found is None:
        return None
    number = float(found[1])
    return number if abs(number) < MOST else None


def whole(text: str | None) -> int | None:
    """Returns the whole number that the text is; None for anything else, and for absurdly long ones."""
    word = (text or "").strip()
    return int(word) if word.isascii() and word.isdecimal() and len(word) <= MOST_DIGITS else None


def read_fields(values: Values, form: Form) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the readings that could be had, and why the others could not.

    A CSV has only what was asked for: a field without a column is in neither.
    """
    read: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for field, kind, spellings in _SPELLINGS[form]:
        for spelling in spellings:
            raw = values.get(spelling)
            if raw is not None:
                value, reason = convert(kind, raw)
                if reason is None:
                    read[field] = value
                else:
                    missing[field] = reason
                break
        else:
            if form != "csv":
                missing[field] = NOT_REPORTED
    return read, missing
