"""What a reap says of itself."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One machine or lease that the reap has something to say about.

    Attributes:
        subject: provider id or lease id. kind: ``lease orphan late foreign``. action: ``ended``, ``refused``, ``pushed``,
            ``unattended``, ``draining`` or ``none``; inside a reap ``end`` stands for what is to be ended.
        reason: words for a person.
    """

    subject: str
    kind: str
    action: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReapReport:
    """What one reap saw and did.

    Attributes:
        report_only: why nothing was ended, in words; None when it was free to act.
        live_count: live machines of this deployment that the clouds listed.
        errors: clouds, machines or leases that could not be looked at or dealt with.
    """

    at: datetime
    who: str
    findings: tuple[Finding, ...]
    live_count: int
    report_only: str | None = None
    errors: tuple[str, ...] = ()
