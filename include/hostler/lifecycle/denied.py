"""A cloud that denies us: written once, and somebody is told at once. Nothing is called gone for it."""

from datetime import datetime

from hostler.cloud.errors import CloudAuthError
from hostler.lifecycle.events import make_event, words_of
from hostler.lifecycle.fleet import Fleet

DENIED = "denied/"
"""Prefix of the ledger's note of when somebody was last told that a cloud denies us, by cloud and region."""

AGAIN_S = 900.0
"""A denial that lasts is told again after this, not by every driver and every look."""


async def note_denied(fleet: Fleet, who: str, place: str, error: CloudAuthError, *, lease_id: str | None = None) -> None:
    """Writes the event ``cloud.denied`` and tells people, unless that was done lately for the place (``cloud/region``)."""
    key, now = f"{DENIED}{place}", fleet.ledger.now()
    told = await fleet.offload(lambda: fleet.ledger.get_meta(key))
    if told and (now - datetime.fromisoformat(told)).total_seconds() < AGAIN_S:
        return
    event = make_event(lease_id, who, "cloud.denied", f"{place} denies us; what runs there goes on: {words_of(error)}")
    fleet.crash("event:denied:before")
    await fleet.offload(lambda: fleet.ledger.append_events([event]))
    await fleet.offload(fleet.tell)
    # Last of all: a process that ends before this leaves the telling to the next look. Twice is better than never.
    await fleet.offload(lambda: fleet.ledger.set_meta(key, now.isoformat()))
