"""Makes the lines of the record. Evidence is picked by name here and never holds keys, tokens or user data."""

from datetime import UTC, datetime

from hostler.cloud.errors import CloudError
from hostler.model.lease import Event

MAX_TEXT = 500
"""Longest text kept of what a cloud or a node said: enough for its code and first sentences."""

EPOCH = datetime.fromtimestamp(0, UTC)
"""Stands in ``at`` until the ledger puts its own clock there."""


def shorten(text: str) -> str:
    """Returns the text in one line, cut at ``MAX_TEXT``."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…"


def words_of(error: BaseException) -> str:
    """Returns type, code and text of an error, for a person."""
    code = f" [{error.code}]" if isinstance(error, CloudError) and error.code else ""
    return shorten(f"{type(error).__name__}{code}: {error}")


def make_event(
    lease_id: str | None, who: str, what: str, why: str, *, slot_index: int | None = None, **evidence: object
) -> Event:
    """Returns an event; the ledger gives it time and number. ``evidence`` values are shown as text; None is left out."""
    pairs = tuple((name, shorten(str(value))) for name, value in sorted(evidence.items()) if value is not None)
    return Event(lease_id=lease_id, who=who, what=what, why=shorten(why), at=EPOCH, slot_index=slot_index, evidence=pairs)
