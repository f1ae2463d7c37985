"""The database's errors in the ledger's words, without the driver's text: that may name the login."""

import functools
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hostler.ledger.errors import LedgerError, LedgerUnavailableError

STATEMENT_TIMEOUT_S: Final = 20
POOL_TIMEOUT_S: Final = 15
"""How long a call waits for one of its process's connections."""

_CAUSES: Final = {
    "25006": "the database is read-only",
    "28": "it refuses the login",
    "3D000": "it has no such database",
    "42501": "the login may not use the ledger's tables",
    "42P01": "tables of the ledger are missing (`hostler ledger upgrade`)",
    "42703": "columns of the ledger are missing (`hostler ledger upgrade`)",
    "3F000": "the ledger's schema is missing (`hostler ledger upgrade`)",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has no connection left",
    "55P03": "a row stayed locked by another writer",
    "57014": f"it did not answer within {STATEMENT_TIMEOUT_S} s",
    "57P": "it is shutting down or starting",
    "40": "another transaction was in the way",
    "25P03": "the transaction was idle for too long",
    "58": "it reports a failure of its own system",
    "XX": "it reports damage",
}
"""SQLSTATE, or its beginning -> what it means here. Source: PostgreSQL 18 manual, appendix A."""


_REFUSALS: Final = {
    "password authentication failed": "it refuses the login",
    "no pg_hba.conf entry": "it refuses the login from this machine",
    "role": "it refuses the login",
    "database": "it has no such database",
    "too many": "it has no connection left",
    "starting up": "it is starting",
    "shutting down": "it is shutting down",
}
"""Words in a refusal to connect, which has no SQLSTATE in the driver -> what they mean, in this order."""


class HasDatabase(Protocol):
    """What ``guarded`` needs of its owner."""

    @property
    def place(self) -> str:
        """Where the database is, without login."""
        ...


Owner = TypeVar("Owner", bound=HasDatabase)
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def guarded(call: Callable[Concatenate[Owner, Arguments], Answer]) -> Callable[Concatenate[Owner, Arguments], Answer]:
    """Wraps a method so that only ledger errors leave it, without the driver's text and traceback: they may name the login."""

    @functools.wraps(call)
    def wrapped(owner: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        try:
            return call(owner, *args, **kwargs)
        except SQLAlchemyError as error:
            fault = fault_of(error, owner.place)
        # Outside the except clause: else the driver's error hangs on this one as its context.
        raise fault

    return wrapped


def fault_of(error: SQLAlchemyError, place: str) -> LedgerError:
    """Returns what a database error means."""
    if isinstance(error, PoolTimeoutError):
        return LedgerUnavailableError(f"ledger at {place}: all connections of this process are busy for {POOL_TIMEOUT_S} s")
    state = getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None
    if state is None:
        return LedgerUnavailableError(f"ledger at {place}{_why_no_connection(str(error))}")
    for beginning, cause in _CAUSES.items():
        if state.startswith(beginning):
            return LedgerUnavailableError(f"ledger at {place}: {cause} (SQLSTATE {state})")
    if state.startswith("08"):
        return LedgerUnavailableError(f"ledger at {place} cannot be reached (SQLSTATE {state})")
    return LedgerError(f"ledger at {place} refused a statement (SQLSTATE {state}): a defect of this program")


def _why_no_connection(words: str) -> str:
    said = words.partition("FATAL:")[2]
    for part, cause in _REFUSALS.items():
        if part in said:
            return f": {cause}"
    return " cannot be reached (is it running?)"
