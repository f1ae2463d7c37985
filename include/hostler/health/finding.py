"""How findings are made: one short call a verdict (pure)."""

from typing import Final

from hostler.health.catalog import LIMITS
from hostler.health.catalog.limits import Limit
from hostler.health.reading import AcceleratorReading
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding

NO_READING: Final = "ours: a reading that is missing is unknown, never healthy"


def failed(code: str, what: str, action: HealthAction, evidence: str, source: str) -> Finding:
    """Returns a finding that makes its subject unfit for work."""
    return Finding(code=code, what=what, verdict=Verdict.FAILED, action=action, evidence=evidence, source=source)


def degraded(code: str, what: str, evidence: str, source: str, action: HealthAction = HealthAction.RECORD) -> Finding:
    """Returns a finding that is a reason to look; the subject works."""
    return Finding(code=code, what=what, verdict=Verdict.DEGRADED, action=action, evidence=evidence, source=source)


def noted(code: str, what: str, evidence: str, source: str) -> Finding:
    """Returns a finding that takes nothing from the subject's health and asks for nothing."""
    return Finding(code=code, what=what, verdict=Verdict.HEALTHY, action=HealthAction.NONE, evidence=evidence, source=source)


def unknown(code: str, what: str, evidence: str = "", source: str = NO_READING) -> Finding:
    """Returns a finding that says that something is not known."""
    return Finding(
        code=code, what=what, verdict=Verdict.UNKNOWN, action=HealthAction.RECORD, evidence=evidence or what, source=source
    )


def needed(reading: AcceleratorReading, field: str) -> list[Finding]:
    """Returns unknown with the device's own reason when the field was asked for; nothing when it was not."""
    if field not in reading.missing:
        return []
    reason = reading.missing[field]
    return [unknown(f"reading.{field}", f"{field} could not be read: {reason}", f"{field}: {reason}")]


def broken(name: str, value: float) -> Limit | None:
    """Returns the threshold that the value breaks; None when it keeps it."""
    row = LIMITS[name]
    return row if row.is_broken_by(value) else None
