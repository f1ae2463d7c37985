"""Readings of nvidia-smi that are put together from several values: ECC sums, throttle bits, fabric health (pure).

A sum is only told when every part of it could be read, unless what could be read is bad already.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from hostler.health.catalog.limits import BAD_THROTTLE_BITS
from hostler.health.checks_memory import NOT_REPORTED
from hostler.health.sources.gpu_fields import Form, Values, number_of

_ECC: Final[dict[Form, tuple[str, tuple[tuple[str, ...], ...]]]] = {
    "xml": ("ecc_errors/{}/", (
        ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable"),
        ("sram_uncorrectable", "dram_uncorrectable"), ("double_bit/total",),
    )),
    "text": ("ecc errors/{}/", (
        ("sram uncorrectable parity", "sram uncorrectable sec-ded", "dram uncorrectable"),
        ("sram uncorrectable", "dram uncorrectable"), ("double bit/total",),
    )),
    "csv": ("ecc.errors.uncorrected.{}.", (("total",), ("sram", "dram"), ("sram.parity", "sram.secded", "dram"))),
}  # fmt: skip
"""Form -> prefix, and the sets of parts that make a whole: drivers before 550, from 550, before Turing."""

THROTTLE_BITS: Final[dict[str, int]] = {
    "gpu_idle": 0x1, "applications_clocks_setting": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40, "hw_power_brake_slowdown": 0x80, "display_clocks_setting": 0x100,
}  # fmt: skip
"""Source: nvml.h, nvmlClocksEventReasons constants, read 2026-12-01."""

_HARDWARE: Final = 0x8
_SOFTWARE: Final = 0x20
_DETAILS: Final = 0x40 | 0x80
"""What slows the hardware down in detail: GPUs before Pascal tell both as N/A, old drivers not at all."""

_THROTTLE_PREFIXES: Final[dict[Form, tuple[str, ...]]] = {
    "xml": ("clocks_event_reasons/clocks_event_reason_", "clocks_throttle_reasons/clocks_throttle_reason_"),
    "text": ("clocks event reasons/", "clocks throttle reasons/"),
    "csv": ("clocks_event_reasons.", "clocks_throttle_reasons."),
}
_TEXT_THROTTLE: Final = {
    "hw_thermal_slowdown": ("hw slowdown/hw thermal slowdown", "hw thermal slowdown"),
    "hw_power_brake_slowdown": ("hw slowdown/hw power brake slowdown", "hw power brake slowdown"),
}
_FABRIC_BAD: Final = {
    "bandwidth": ("full",), "route recovery in progress": ("false", "no"), "route unhealthy": ("false", "no"),
    "access timeout recovery": ("false", "no"), "summary": ("healthy",), "incorrect configuration": ("none", "no", "false"),
}  # fmt: skip
"""Field of the fabric's health -> the words that are good; N/A is no matter."""

Read = dict[str, Any]
Missing = dict[str, str]


def read_counts(values: Values, form: Form, read: Read, missing: Missing) -> None:
    """Adds the readings that are made of several values to ``read``, or why there are none to ``missing``."""
    for age in ("volatile", "aggregate"):
        _put(f"ecc_{age}_uncorrectable_count", _sum(values, form, age), read, missing)
    _put("throttle_mask", _mask(values, form), read, missing)
    health = fabric_health(values, form)
    if health:
        read["fabric_health"] = health


def _put(field: str, found: tuple[int | None, str | None], read: Read, missing: Missing) -> None:
    value, reason = found
    if value is not None:
        read[field] = value
    elif reason is not None:
        missing[field] = reason


def _sum(values: Values, form: Form, age: str) -> tuple[int | None, str | None]:
    prefix, wholes = _ECC[form]
    prefix = prefix.format(age)
    bad, reason, most = 0, None, 0
    for parts in wholes:
        texts = [values.get(prefix + part) for part in parts]
        numbers = [None if text is None else number_of(text.strip()) for text in texts]
        known = [number for number in numbers if number is not None]
        bad = max(bad, int(sum(known)))
        if len(known) == len(parts):
            most = 1
        reason = reason or next((text.strip() for text, n in zip(texts, numbers, strict=True) if text and n is None), None)
    total = values.get(prefix + "total") if form == "csv" else None
    if total is not None and not bad and number_of(total.strip()) is None:
        return None, total.strip() or NOT_REPORTED  # asked for and not to be had: the parts do not stand in for it
    if bad or most:
        return bad, None
    asked = any(key.startswith(prefix) for key in values) if form == "csv" else True
    return None, (reason or NOT_REPORTED) if asked else None


def _mask(values: Values, form: Form) -> tuple[int | None, str | None]:
    for prefix in _THROTTLE_PREFIXES[form]:
        whole = values.get(prefix + "active") if form == "csv" else None
        if whole is not None:
            return hex_mask(whole)
    mask, seen, absent, reason = 0, 0, 0, None
    for name, bit in THROTTLE_BITS.items():
        text = next((values[key] for key in _throttle_keys(form, name) if key in values), None)
        if text is None:
            continue
        state = text.strip().lower()
        if state in {"active", "not active"}:
            seen |= bit
            mask |= bit if state == "active" else 0
        else:
            reason = text.strip()
            absent |= bit if state in {"n/a", "[n/a]"} else 0
    if seen & _HARDWARE and (absent & _DETAILS == _DETAILS or _is_old(values, form)):
        seen |= _DETAILS | (0 if absent else _SOFTWARE)
    if mask & BAD_THROTTLE_BITS or seen & BAD_THROTTLE_BITS == BAD_THROTTLE_BITS:
        return mask, None
    block = {
        "xml": ("clocks_event_reasons", "clocks_throttle_reasons"),
        "text": ("clocks event reasons", "clocks throttle reasons"),
    }
    for name in block.get(form, ()):
        reason = reason or values.get(name, "").strip() or None
    if form == "csv":
        return None, reason or (f"{NOT_REPORTED} in full" if seen else None)
    return None, reason or NOT_REPORTED


def _is_old(values: Values, form: Form) -> bool:
    """True when the list of reasons is that of drivers before 384, which ends with an unknown one and has no details."""
    newer = ("hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost")
    told = [name for name in (*newer, "unknown") if any(key in values for key in _throttle_keys(form, name))]
    return told == ["unknown"]


def hex_mask(text: str) -> tuple[int | None, str | None]:
    """Returns the bits of ``0x0000000000000004``, or why there are none."""
    word = text.strip()
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", word):
        return int(word, 16), None
    return (int(word), None) if re.fullmatch(r"\d{1,6}", word) else (None, word or NOT_REPORTED)


def _throttle_keys(form: Form, name: str) -> Iterable[str]:
    for prefix in _THROTTLE_PREFIXES[form]:
        if form != "text":
            yield prefix + name
            continue
        spaced = name.replace("_", " ").removeprefix("gpu ")
        for tail in _TEXT_THROTTLE.get(name, (spaced, spaced.replace("clocks", "clock"))):
            yield prefix + tail


def fabric_health(values: Values, form: Form) -> str:
    """Returns the fabric's health fields that are not good, in the tool's words; empty when all are good or N/A."""
    prefix = {"xml": "fabric/health/", "text": "fabric/health/", "csv": "fabric.health."}[form]
    bad = []
    for name, good in _FABRIC_BAD.items():
        text = values.get(prefix + (name if form == "text" else name.replace(" ", "_")), "").strip()
        if text and text.lower() not in {"n/a", "[n/a]", "not supported", "[not supported]", *good}:
            bad.append(f"{name}: {text}")
    return ", ".join(bad)
