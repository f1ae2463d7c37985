"""The way to the database: engine, time-outs, schema check, and its errors in the ledger's words."""

import functools
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hostler.ledger.errors import LedgerError, LedgerUnavailableError
from hostler.stores.tables import HEAD, SCHEMA, VERSION_TABLE

CONNECT_TIMEOUT_S: Final = 5
STATEMENT_TIMEOUT_S: Final = 20
POOL_TIMEOUT_S: Final = 15
"""How long a call waits for one of its process's connections."""

_SESSION: Final = {
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "lock_timeout": f"{STATEMENT_TIMEOUT_S - 5}s",
    # A process that is stopped in mid-transaction must not hold the others for long.
    "idle_in_transaction_session_timeout": "30s",
    "timezone": "UTC",
    # All names are qualified; a schema named like the login must not change what is found.
    "search_path": "public",
    "application_name": "hostler",
}

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


def read_url(address: str) -> URL:
    """Returns the parsed address, with the driver that the ledger uses.

    Raises:
        LedgerUnavailableError: it is not a PostgreSQL address. The text never holds the address: it has a password in it.
    """
    try:
        url: URL | None = make_url(address)
    except (SQLAlchemyError, ValueError):
        url = None
    if url is None or url.get_backend_name() not in {"postgresql", "postgres"} or not url.database:
        raise LedgerUnavailableError("ledger.url: allowed is postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
    return url.set(drivername="postgresql+psycopg")


def make_engine(url: URL, *, pool_size: int) -> Engine:
    """Returns an engine that opens no connection yet."""
    options = " ".join(f"-c {name}={value}" for name, value in _SESSION.items())
    return create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_S,
        pool_pre_ping=True,
        pool_recycle=300,
        pool_use_lifo=True,
        hide_parameters=True,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "options": options,
            # A cut cable is noticed while a statement waits for its answer.
            "tcp_user_timeout": STATEMENT_TIMEOUT_S * 1000,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        },
    )


class Database:
    """Connections to a database at the right schema. Threads share it; a forked child gets connections of its own.

    Attributes:
        place: host, port and name, for messages.
    """

    def __init__(self, address: str, *, pool_size: int = 8) -> None:
        url = read_url(address)
        self.place = f"{url.host or 'localhost'}:{url.port or 5432}/{url.database}"
        self._engine = make_engine(url, pool_size=pool_size)
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._pid = os.getpid()
        self._finalizer = weakref.finalize(self, self._engine.dispose)

    def close(self) -> None:
        """Closes idle connections; a later call opens new ones."""
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Gives a connection on which each statement is a transaction of its own."""
        self._check_process()
        with self._reader.connect() as connection:
            self._check_schema(connection)
            yield connection

    @contextmanager
    def change(self) -> Iterator[Connection]:
        """Gives a connection in a transaction, committed at the end, rolled back on an error.

        Raises:
            LedgerUnavailableError: the answer to the commit is lost, and the database cannot be asked whether it came about.
        """
        self._check_process()
        with self._engine.connect() as connection:
            self._check_schema(connection)
            yield connection
            number: str | None = connection.scalar(text("SELECT pg_current_xact_id_if_assigned()::text"))
            lost: DBAPIError | None = None
            try:
                connection.commit()
            except DBAPIError as error:
                lost = error
            if lost is None:
                return
            if number is None or not lost.connection_invalidated or not self._was_kept(number):
                raise lost

    def _was_kept(self, number: str) -> bool:
        """True when the transaction was committed, False when it was rolled back.

        Raises:
            LedgerUnavailableError: nobody can tell.
        """
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        status: str | None = "in progress"
        # The server may not have noticed yet that the connection is gone.
        while status == "in progress" and time.monotonic() < deadline:
            try:
                with self._reader.connect() as connection:
                    status = connection.scalar(text("SELECT pg_xact_status(CAST(:number AS xid8))"), {"number": number})
            except DBAPIError:
                status = None
            time.sleep(0.05)
        if status not in {"committed", "aborted"}:
            raise LedgerUnavailableError(
                f"ledger at {self.place} went away during a commit: the last change may or may not be kept, read again"
            )
        return status == "committed"

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            # Sockets are shared with the parent since the fork: forget them, without a word to the server.
            self._engine.dispose(close=False)
            self._pid = os.getpid()

    def _check_schema(self, connection: Connection) -> None:
        """Asks once a database connection; connections are renewed every few minutes."""
        if connection.info.get("has_schema"):
            return
        version = schema_version(connection)
        if version != HEAD:
            connection.invalidate()
            raise LedgerUnavailableError(
                f"ledger at {self.place} is at schema {version or 'none'}, this program needs {HEAD}: {_remedy(version)}"
            )
        connection.info["has_schema"] = True


def schema_version(connection: Connection) -> str | None:
    """Returns the id of the newest migration that ran; None when none did."""
    table = f"{SCHEMA}.{VERSION_TABLE}"
    if connection.scalar(text("SELECT to_regclass(:name)"), {"name": table}) is None:
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {table}"))  # noqa: S608 - constants
    return found


def _remedy(version: str | None) -> str:
    return "run `hostler ledger upgrade`" if version is None or version < HEAD else "update this program"
