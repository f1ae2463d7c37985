"""From the ledger's side: leases that nobody drives are marked, let go when their time is over, and pushed to their end."""

from dataclasses import replace
from datetime import datetime

from hostler.ledger.errors import FenceLostError, LedgerError, StaleWriteError
from hostler.lifecycle.converge import DRIVEN, converge
from hostler.lifecycle.events import make_event
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.limits import limit_reached
from hostler.lifecycle.reap_report import Finding
from hostler.lifecycle.release import begin_release
from hostler.lifecycle.slots import has_reached
from hostler.lifecycle.unattended import look_after
from hostler.model.enums import LeaseState, Phase
from hostler.model.lease import Lease

UNATTENDED_AFTER_S = 900
"""A lease that nobody drove for this long is left to itself: triggers come back within 300 s, retries within 600 s."""

PUSH_AFTER_S = 120
"""A draining lease is pushed when nobody drove it for this long: the Dag's own teardown comes first."""

LEFT_AFTER_S = 600
"""A lease whose work is over, well or not, is let go when the Dag's teardowns have not begun by then (a paused Dag holds them)."""

PUSH_BUDGET_S = 60.0
LOOKED = "reap/looked_at"
SINCE = "reap/watching_since"
"""The ledger's notes of when a reconcile last looked at the leases, and since when without a long pause."""

OPEN = (LeaseState.REQUESTED, LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.UNATTENDED)
ENDING = (LeaseState.DRAINING, LeaseState.EXPIRED, LeaseState.LOST)


async def push_leases(fleet: Fleet, *, who: str, report_only: str | None) -> tuple[list[Finding], list[str]]:
    """Treats every lease that is not released; returns findings, and errors in words."""
    findings: list[Finding] = []
    errors: list[str] = []
    since = await fleet.offload(lambda: watching_since(fleet, may_write=report_only is None))
    for lease in await fleet.offload(lambda: fleet.ledger.list_leases(*OPEN, *ENDING)):
        try:
            finding = await _treat(fleet, lease, since, who=who, report_only=report_only)
        except (FenceLostError, StaleWriteError):
            continue  # somebody else drives it at this moment: good
        except LedgerError as error:
            errors.append(f"lease {lease.lease_id}: {error}")
            continue
        if finding is not None:
            findings.append(finding)
    return findings, errors


async def _treat(fleet: Fleet, lease: Lease, since: datetime, *, who: str, report_only: str | None) -> Finding | None:
    now = await fleet.offload(fleet.ledger.now)
    idle_s = await _idle_s(fleet, lease, now)
    reason = await _why_end(fleet, lease, now, idle_s, since, may_write=report_only is None)
    if reason is None:
        return None
    if report_only is not None:
        return _finding(lease, "none", f"{reason}; left alone: {report_only}")
    if lease.state is LeaseState.ACTIVE and reason.startswith("nobody"):
        return await _leave_to_itself(fleet, lease, who, reason)
    if lease.state is not LeaseState.DRAINING:
        await fleet.offload(lambda: begin_release(fleet, lease.lease_id, who=who, reason=reason))
    outcome = await converge(fleet, lease.lease_id, Phase.RELEASE, holder=who, budget_s=PUSH_BUDGET_S)
    return _finding(lease, "pushed", f"{reason}: {type(outcome).__name__.lower()}")


def watching_since(fleet: Fleet, *, may_write: bool) -> datetime:
    """Returns since when reconciles have looked without a long pause; keeps the time of this one.

    Idle time and grace count only while somebody watches. After an outage of the whole control plane, the retries that drive
    the leases again come some minutes after the first reconcile, and must not find them let go. A clock of the database that
    jumps looks the same, and expires nothing either.
    """
    kept, since, now = fleet.ledger.get_meta(LOOKED), fleet.ledger.get_meta(SINCE), fleet.ledger.now()
    was_away = kept is None or abs((now - datetime.fromisoformat(kept)).total_seconds()) > UNATTENDED_AFTER_S
    if may_write:
        fleet.ledger.set_meta(LOOKED, now.isoformat())
        if was_away or since is None:
            fleet.ledger.set_meta(SINCE, now.isoformat())
    return now if was_away or since is None else datetime.fromisoformat(since)


async def _idle_s(fleet: Fleet, lease: Lease, now: datetime) -> float:
    """Returns for how many seconds nobody has driven the lease."""
    driven = await fleet.offload(lambda: fleet.ledger.get_meta(f"{DRIVEN}{lease.lease_id}"))
    last = datetime.fromisoformat(driven) if driven else lease.created_at
    return (now - last).total_seconds()


async def _why_end(fleet: Fleet, lease: Lease, now: datetime, idle_s: float, since: datetime, *, may_write: bool) -> str | None:
    """Returns why the lease is to be dealt with now; None when it is in good hands.

    Args:
        since: idle time and grace before this do not count (``watching_since``); limits and endings always do.
    """
    if lease.state in ENDING:
        return f"{lease.state} for {idle_s:.0f} s without a driver" if idle_s > PUSH_AFTER_S else None
    view = await fleet.offload(lambda: fleet.ledger.view(lease.lease_id))
    limit = limit_reached(view, now)
    if limit is not None and idle_s > PUSH_AFTER_S:
        return limit
    watched_s = min(idle_s, (now - since).total_seconds())
    over = lease.failure or ("its job is done" if has_reached(lease, Phase.RUN) else None)
    if over is not None and watched_s > LEFT_AFTER_S:
        return f"over and not let go for {idle_s:.0f} s: {over}"
    if lease.state is LeaseState.UNATTENDED and lease.unattended_since is not None:
        grace_s = fleet.settings.unattended_grace_s
        gone_s = (now - max(lease.unattended_since, since)).total_seconds()
        if gone_s >= grace_s:
            return f"unattended for {gone_s:.0f} s, grace is {grace_s:.0f} s"
        return "its job is done and nobody drives it" if may_write and await look_after(fleet, view) else None
    # An active lease is only marked, and its grace begins with the mark: there, all of its idle time counts.
    is_active = lease.state is LeaseState.ACTIVE
    counted_s = idle_s if is_active else watched_s
    after_s = UNATTENDED_AFTER_S + (0.0 if is_active else fleet.settings.unattended_grace_s)
    return f"nobody has driven it for {counted_s:.0f} s" if counted_s > after_s else None


async def _leave_to_itself(fleet: Fleet, lease: Lease, who: str, reason: str) -> Finding:
    """Marks the lease; its job goes on. Written without the fence: a driver that comes back finds its own in force."""
    now = await fleet.offload(fleet.ledger.now)
    unattended = replace(lease, state=LeaseState.UNATTENDED, unattended_since=now)
    event = make_event(lease.lease_id, who, "lease.unattended", reason)
    fleet.crash("write:unattended:before")
    await fleet.offload(lambda: fleet.ledger.write(lease.lease_id, [unattended], [event]))
    fleet.crash("write:unattended:after")
    await fleet.offload(fleet.tell)
    return _finding(lease, "unattended", reason)


def _finding(lease: Lease, action: str, reason: str) -> Finding:
    return Finding(subject=lease.lease_id, kind="lease", action=action, reason=reason)
