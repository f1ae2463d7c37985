"""Advisory locks of the ledger's database: what one transaction at a time may do. Held until its end."""

from typing import Final

from sqlalchemy import Connection, text

_SPACE: Final = 0x686F7374
"""First key of all our locks (``host`` in ASCII), so that other programs in the same database do not meet them."""

MIGRATION: Final = 1
PURCHASE: Final = 2
"""Counting what is spent and adding to it, and stopping all spending."""
EVENTS: Final = 3
"""Appending events: their numbers appear in order, so that a reader who asks for what came after n misses none."""


def take_lock(connection: Connection, lock: int) -> None:
    """Waits for the lock. Order, where a transaction takes several things: PURCHASE, the lease's row, EVENTS."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:space, :lock)"), {"space": _SPACE, "lock": lock})
