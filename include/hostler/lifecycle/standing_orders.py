"""What every housekeeping step asks before it ends anything: may this deployment end things now, and since when is it marked?"""

from datetime import datetime

from hostler.lifecycle.events import make_event
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.policies import Guard, GuardBatch, GuardVerdict
from hostler.lifecycle.reap import CONFIRMED
from hostler.model.enums import FleetMode


def why_only_report(fleet: Fleet, *, dry_run: bool) -> str | None:
    """Returns why nothing may be ended in this run, in words; None when it may.

    Housekeeping ends nothing on a ledger that ``reap`` has not taken for the only one of its deployment.
    """
    if dry_run:
        return "dry run"
    if fleet.settings.mode is FleetMode.OBSERVE:
        return "mode: observe in fleet.yaml"
    if not fleet.ledger.get_meta(CONFIRMED):
        return "this ledger is not confirmed yet: hostler_fleet_reconcile does it, or a person (`hostler reap --confirm`)"
    return None


def marked_since(fleet: Fleet, key: str) -> datetime | None:
    """Returns since when a subject is marked; None when it is not."""
    kept = fleet.ledger.get_meta(key)
    return datetime.fromisoformat(kept) if kept else None


def mark(fleet: Fleet, key: str, now: datetime) -> None:
    """Marks a subject; the first mark stays."""
    if not fleet.ledger.get_meta(key):
        fleet.ledger.set_meta(key, now.isoformat())


def unmark(fleet: Fleet, *keys: str) -> None:
    """Takes marks away: what they stood for does not hold any more."""
    for key in keys:
        if fleet.ledger.get_meta(key):
            fleet.ledger.set_meta(key, "")


def ask_guard(fleet: Fleet, guard: Guard, batch: GuardBatch, *, who: str, step: str) -> GuardVerdict:
    """Asks the guard and writes down when it refuses. A guard that breaks refuses, too: nothing unchecked is acted on."""
    try:
        verdict = guard(batch)
    except Exception as error:  # noqa: BLE001 - whatever went wrong with the checks, it must not end anything
        verdict = GuardVerdict(problems=(f"the checks could not be made: {type(error).__name__}: {error}",))
    if verdict.problems:
        why = "; ".join(verdict.problems)
        event = make_event(None, who, f"{step}.checks_failed", why, rows=len(batch.rows), report=verdict.report or None)
        fleet.ledger.append_events([event])
    return verdict
