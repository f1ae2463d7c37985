"""The second net: compares the ledger with the clouds in both directions and ends what nobody answers for."""

from dataclasses import dataclass
from datetime import datetime

from hostler.lifecycle.fleet import Fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One machine or lease that the reap has something to say about.

    Attributes:
        subject: provider id or lease id. kind: ``lease orphan late foreign stopped``. action: what was done, or ``none``.
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
        live_count: live machines of this deployment that the clouds listed. errors: clouds or leases that could not be looked at.
    """

    at: datetime
    who: str
    findings: tuple[Finding, ...]
    live_count: int
    report_only: str | None = None
    errors: tuple[str, ...] = ()


async def reconcile(fleet: Fleet, *, who: str, dry_run: bool) -> ReapReport:
    """Pushes leases that nobody drives, and ends orphans; touches nothing that is not certainly ours.

    Idempotent, and safe when two run at once. With ``dry_run``, in mode ``observe``, or on a ledger that no person has
    confirmed and that does not know the machines it sees, it only reports.
    """
    raise NotImplementedError


def confirm_epoch(fleet: Fleet, *, who: str) -> None:
    """A person says that this ledger is the one and only of its deployment: from now on ``reconcile`` may end orphans."""
    raise NotImplementedError
