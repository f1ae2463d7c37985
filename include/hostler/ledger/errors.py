"""What a ledger says when it will not write. Nothing was written, but for the case that LedgerUnavailableError names."""


class LedgerError(Exception):
    """Base of all that leaves a ledger."""


class LedgerUnavailableError(LedgerError):
    """It cannot be reached, is read-only, or is not at the schema this program needs: buy nothing; try again later.

    One case is different, and its text says so: the ledger went away during a commit, and nobody can tell whether the change
    was kept. Read again before deciding.
    """


class LeaseNotFoundError(LedgerError):
    """No lease with that id."""


class FenceLostError(LedgerError):
    """A newer attempt holds the lease: stop at once, without any further effect."""


class LeaseClosedError(LedgerError):
    """The lease is draining or over, or purchases are stopped: buy nothing more for it."""


class StaleWriteError(LedgerError):
    """Another writer changed the row first: read again and decide again."""


class LimitExceededError(LedgerError):
    """The purchase would pass a cap. The text names the cap, its value, what is in use and what was asked.

    Attributes:
        limit: ``usd_per_hour``, ``nodes``, ``tenant_usd_per_hour``, ``tenant_nodes`` or ``usd_per_run``.
    """

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit
