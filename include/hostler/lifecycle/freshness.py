"""Nothing is bought while the second net is not watching: when was the last reconcile that was free to act?"""

from datetime import datetime

from hostler.lifecycle.fleet import Fleet

RECONCILED = "reconciled_at"
"""The ledger's note of the last reconcile that was free to act, as ISO time."""


def note_reconciled(fleet: Fleet, at: datetime) -> None:
    """Keeps the time of a reconcile that was free to act."""
    fleet.ledger.set_meta(RECONCILED, at.isoformat())


def why_stale(fleet: Fleet) -> str | None:
    """Returns why nothing may be bought now, in words; None when the last reconcile is young enough.

    A ledger that has never seen a reconcile begins to count at the first question.
    """
    limit_s = fleet.settings.reconcile_stale_s
    if limit_s <= 0:
        return None
    last, now = fleet.ledger.get_meta(RECONCILED), fleet.ledger.now()
    if last is None:
        note_reconciled(fleet, now)
        return None
    age_s = (now - datetime.fromisoformat(last)).total_seconds()
    if age_s <= limit_s:
        return None
    return (
        f"no reconcile was free to act for {age_s:.0f} s, allowed are {limit_s:.0f} s: nothing is bought until one is "
        "(is the Dag hostler_fleet_reconcile paused? `hostler reap` says what holds it)"
    )
