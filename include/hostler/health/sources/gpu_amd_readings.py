"""Readings of AMD accelerators, from the JSON of rocm-smi and of amd-smi (pure).

Both tools changed their spelling often. A sensor that a data-centre accelerator has and the document lacks is missing, not well.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hostler.health.checks import judge_reading, unread
from hostler.health.finding import degraded, failed, unknown
from hostler.health.reading import AcceleratorReading
from hostler.health.sources.gpu_fields import number_of
from hostler.model.enums import HealthAction
from hostler.model.health import Finding

HOTSPOT_WARN_C: Final = 100.0
HOTSPOT_SHUTDOWN_C: Final = 110.0
MEMORY_WARN_C: Final = 95.0
"""Where the document tells no limits. Source: amd-smi static --limit of an MI300X, ROCm documentation, read 2026-12-01."""
_DATA_CENTRE: Final = re.compile(r"instinct|\bMI\d{2,3}", re.IGNORECASE)
_RAS: Final = "AMD SMI documentation, ECC counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class AmdReading:
    """One accelerator. A value that is None was not told; one that was told but is no number stands in ``odd`` with its text.

    ``asks_ecc``: the document tells of ECC, so that it must tell a number. ``is_partial``: a document of other things than
    sensors (a list, static facts).
    """

    index: int
    pci: str | None = None
    uuid: str | None = None
    name: str | None = None
    edge_c: float | None = None
    hotspot_c: float | None = None
    memory_c: float | None = None
    hotspot_limit_c: float | None = None
    memory_limit_c: float | None = None
    utilisation_ratio: float | None = None
    uncorrectable_count: int | None = None
    correctable_count: int | None = None
    deferred_count: int | None = None
    asks_ecc: bool = False
    is_partial: bool = False
    throttles: tuple[str, ...] = ()
    link_errors: tuple[str, ...] = ()
    odd: Mapping[str, str] | None = None


def judge_amd(reading: AmdReading) -> tuple[list[Finding], list[str]]:
    """Returns the findings, and what could not be read though no verdict hangs on it."""
    if reading.is_partial:
        return [unknown("reading.health", "it is listed; nothing is told of its health")], []
    missing = dict(reading.odd or {})
    if reading.utilisation_ratio is None:
        missing.setdefault("utilisation_ratio", "not reported")
    hottest = reading.hotspot_c if reading.hotspot_c is not None else reading.edge_c
    if hottest is None:
        missing.setdefault("temperature_c", "not reported")
    shared = AcceleratorReading(
        index=reading.index,
        pci=reading.pci,
        uuid=reading.uuid,
        name=reading.name,
        missing=missing,
        temperature_c=hottest,
        temperature_max_operating_c=(reading.hotspot_limit_c or HOTSPOT_WARN_C) if reading.hotspot_c is not None else None,
        temperature_slowdown_c=HOTSPOT_SHUTDOWN_C if reading.hotspot_c is not None else None,
        memory_temperature_c=reading.memory_c,
        memory_temperature_max_c=reading.memory_limit_c or MEMORY_WARN_C,
        utilisation_ratio=reading.utilisation_ratio,
        ecc_volatile_uncorrectable_count=reading.uncorrectable_count,
    )
    findings = judge_reading(shared)
    if reading.hotspot_c is not None and reading.edge_c is not None:
        findings += [f for f in judge_reading(AcceleratorReading(temperature_c=reading.edge_c)) if f not in findings]
    return [*findings, *_more(reading)], unread(shared)


def _more(reading: AmdReading) -> Iterator[Finding]:
    if _DATA_CENTRE.search(reading.name or ""):
        for sensor, value in (("hotspot", reading.hotspot_c), ("memory", reading.memory_c)):
            if value is None:
                yield unknown(f"reading.{sensor}", f"the {sensor} temperature is not told")
    if reading.asks_ecc and reading.uncorrectable_count is None and "ecc" not in (reading.odd or {}):
        yield unknown("reading.ecc", "the count of uncorrectable ECC errors is not told")
    if reading.deferred_count:
        what = f"{reading.deferred_count} deferred ECC errors: data that was never read is lost"
        yield degraded("ecc.deferred", what, what, _RAS, HealthAction.RESET_GPU)
    for reason in reading.throttles:
        yield degraded("clocks.throttled", f"throttled: {reason}", reason, "AMD SMI documentation, throttle status")
    for text in reading.link_errors:
        yield degraded(
            "xgmi.errors", f"XGMI errors: {text}", text, "AMD SMI documentation, xgmi_err", HealthAction.DRAIN_AND_DIAG
        )


def amount(value: Any) -> tuple[float | None, str | None]:
    """Returns the number of ``{"value": 45, "unit": "C"}``, ``45``, ``"45.0"``; else None and the odd text, if there is one."""
    if isinstance(value, Mapping):
        value = value.get("value")
    if isinstance(value, bool) or value is None:
        return None, None
    if isinstance(value, (int, float)):
        return (float(value), None) if abs(value) < 2**63 else (None, str(value)[:40])
    if isinstance(value, str):
        number = number_of(value.strip().strip("()"))
        return (number, None) if number is not None else (None, value.strip()[:200] or "empty")
    return None, str(value)[:200]


def lost(index: int, pci: str | None, why: str) -> Finding:
    """Returns the finding for an accelerator that the tool could not read at all."""
    what = f"accelerator {index}{f' ({pci})' if pci else ''} cannot be read: {why}"
    return failed("device.unreachable", what, HealthAction.REBOOT_NODE, why, "ROCm/rocm_smi_lib#85")
