"""The blast radius: how many machines all reconciles together may end in a while. Counted in the ledger."""

import json
from datetime import datetime, timedelta
from typing import Final

from hostler.lifecycle.fleet import Fleet

WINDOW: Final = "reap/window"
WINDOW_S: Final = 60
"""Reconciles closer together than this are one tick, and share what one may end."""


def claim_end(fleet: Fleet, provider_id: str) -> bool:
    """Takes a machine from what may be ended now; returns False, taking nothing, when that is used up.

    The same machine again is the same end: two reconciles at once often come to the same one.
    """
    ledger, most = fleet.ledger, fleet.settings.destroyed_per_tick
    while True:
        kept, now = ledger.get_meta(WINDOW), ledger.now()
        began_at, ended = _read(kept, now)
        if provider_id in ended or len(ended) >= most:
            return provider_id in ended
        if ledger.swap_meta(WINDOW, kept, json.dumps({"from": began_at.isoformat(), "ended": [*ended, provider_id]})):
            return True


def _read(kept: str | None, now: datetime) -> tuple[datetime, list[str]]:
    """Returns when the window began and what was ended in it; a new window where there is none any more."""
    if kept is None:
        return now, []
    window = json.loads(kept)
    began_at = datetime.fromisoformat(window["from"])
    # One that begins in the future was written before the database's clock was set back.
    is_over = not timedelta(0) <= now - began_at < timedelta(seconds=WINDOW_S)
    return (now, []) if is_over else (began_at, list(window["ended"]))
