"""From the values of one GPU, as nvidia-smi wrote them, to its reading and its judgement (pure)."""

import re
from collections.abc import Sequence
from typing import Final

from hostler.health.checks import judge_reading, unread
from hostler.health.reading import AcceleratorReading
from hostler.health.roll_up import accelerator_health
from hostler.health.sources.gpu_counts import read_counts
from hostler.health.sources.gpu_fields import Form, Values, read_fields
from hostler.health.words import DEVICE_WORDS, device_finding
from hostler.model.health import AcceleratorHealth, Finding

_MAJOR: Final = re.compile(r"\d{2,4}")
_ORDINARY: Final = re.compile(
    r"^\[?(n/?a|not supported|not reported.*|not available|requested functionality.*|none|-?)\]?$", re.IGNORECASE
)


def reading_of(
    values: Values, form: Form, *, index: int | None = None, pci: str | None = None, driver: str | None = None
) -> AcceleratorReading:
    """Returns the reading of one GPU; ``driver`` is its version as the tool tells it."""
    read, missing = read_fields(values, form)
    read_counts(values, form, read, missing)
    major = _MAJOR.match(driver or "")
    return AcceleratorReading(index=index, pci=pci, driver_major=int(major.group()) if major else None, missing=missing, **read)


def error_findings(reading: AcceleratorReading) -> list[Finding]:
    """Returns what the device's own words in place of values mean: lost, needs a reset, cannot be reached. Each once."""
    found: dict[str, Finding] = {}
    for field, reason in reading.missing.items():
        if _ORDINARY.match(reason):
            continue
        finding = device_finding(reason, f"{field}: {reason}")
        if finding and finding.code not in found:
            found[finding.code] = finding
    order = [word.code for word in DEVICE_WORDS]
    return sorted(found.values(), key=lambda finding: order.index(finding.code))


def judged(reading: AcceleratorReading, *, extra: Sequence[Finding] = ()) -> tuple[AcceleratorHealth, list[str]]:
    """Returns the accelerator's health, and what could not be read of it though its verdict does not hang on it."""
    errors = list({finding.code: finding for finding in (*error_findings(reading), *extra)}.values())
    findings = judge_reading(reading)
    if any(finding.code.startswith(("device.", "driver.")) for finding in errors):
        findings = [finding for finding in findings if not finding.code.startswith("reading.")]
    health = accelerator_health(index=reading.index, pci=reading.pci, uuid=reading.uuid, findings=(*errors, *findings))
    name = f"accelerator {reading.pci or '?' if reading.index is None else reading.index}"
    unknown = [f"{name}: {text}" for text in unread(reading)]
    unknown += [f"{name}: {finding.what}" for finding in findings if finding.code.startswith("reading.")]
    return health, unknown
