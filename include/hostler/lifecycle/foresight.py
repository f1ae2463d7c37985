"""Says early that a run cannot meet its deadline: while somebody can still do something about it. The forecast is pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from hostler.ledger.port import Ledger
from hostler.model.enums import JobState, LeaseState
from hostler.model.lease import Event, Job, LeaseView

AT_RISK: Final = "lease.deadline_at_risk"
_OPEN: Final = (LeaseState.REQUESTED, LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.UNATTENDED)
_LEAST_STEPS: Final = 10
"""Steps of an attempt that are needed before its pace says anything."""

_REMEMBERED_STARTS: Final = 20
_USUAL_START_S: Final = 180.0
"""From a granted lease to a running job, while the ledger knows fewer than three: boot, driver, probe of a rented GPU node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """``ends_at``: not before that time. ``why``: what it rests on."""

    ends_at: datetime
    why: str


def forecast(view: LeaseView, now: datetime, *, usual_start_s: float) -> Forecast | None:
    """Returns the earliest end that the record speaks for; None when it speaks for none, or the work is over.

    Args:
        usual_start_s: seconds from the grant of a lease to its running job.
    """
    lease = view.lease
    if lease.state not in _OPEN or lease.release_reason is not None:
        return None
    job = view.jobs[-1] if view.jobs else None
    if job is None or job.state is JobState.STARTING:
        since = min(lease.created_at, now)
        spent_s = (now - since).total_seconds() if view.nodes else 0.0
        left_s = max(0.0, usual_start_s - spent_s)
        return Forecast(
            ends_at=now + timedelta(seconds=left_s), why=f"no job yet; jobs here usually start within {usual_start_s:.0f} s"
        )
    return _by_pace(job, now) if job.state is JobState.RUNNING else None


def _by_pace(job: Job, now: datetime) -> Forecast | None:
    """Goes by the steps done since this attempt began."""
    total = dict(job.metrics).get("steps_total", 0)
    done = job.step - job.resumed_from_step
    if total <= job.step or done < _LEAST_STEPS:
        return None
    step_s = (now - job.started_at).total_seconds() / done
    left_s = (total - job.step) * step_s
    why = f"step {job.step} of {total:.0f} at {step_s:.2f} s a step"
    return Forecast(ends_at=now + timedelta(seconds=left_s), why=why)


def usual_start_s(events: Sequence[Event]) -> float:
    """Returns the median time from ``lease.granted`` to ``job.running``, of the newest leases that have both.

    Args:
        events: of any leases, oldest first.
    """
    granted = {event.lease_id: event.at for event in events if event.what == "lease.granted"}
    running: dict[str | None, datetime] = {}
    for event in events:
        if event.what == "job.running":
            running.setdefault(event.lease_id, event.at)
    starts = [(running[lease] - at).total_seconds() for lease, at in granted.items() if lease in running]
    newest = starts[-_REMEMBERED_STARTS:]
    return median(newest) if len(newest) >= 3 else _USUAL_START_S  # noqa: PLR2004  # fewer say nothing


def warn_of_deadlines(ledger: Ledger, *, who: str) -> int:
    """Writes an event for each open lease whose forecast lies after its deadline, once a lease; returns how many.

    Raises:
        LedgerUnavailableError: ask again later; nothing is lost.
    """
    leases = [lease for lease in ledger.list_leases(*_OPEN) if lease.request.deadline_at is not None]
    if not leases:
        return 0
    now = ledger.now()
    start_s = usual_start_s(ledger.list_events(None, limit=100_000))
    events = [event for lease in leases if (event := _warning(ledger, lease.lease_id, now, start_s, who)) is not None]
    if events:
        ledger.append_events(events)
    return len(events)


def _warning(ledger: Ledger, lease_id: str, now: datetime, start_s: float, who: str) -> Event | None:
    view = ledger.view(lease_id)
    deadline_at = view.lease.request.deadline_at
    seen = forecast(view, now, usual_start_s=start_s)
    if deadline_at is None or seen is None or seen.ends_at <= deadline_at:
        return None
    if any(event.what == AT_RISK for event in ledger.list_events(lease_id, limit=100_000)):
        return None
    late_s = (seen.ends_at - deadline_at).total_seconds()
    why = f"will end {late_s:.0f} s after its deadline {deadline_at:%Y-%m-%d %H:%M:%S} UTC at the earliest: {seen.why}"
    evidence = (("ends_at", seen.ends_at.isoformat()), ("deadline_at", deadline_at.isoformat()))
    return Event(lease_id=lease_id, who=who, what=AT_RISK, why=why, at=now, evidence=evidence)
