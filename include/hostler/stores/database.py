"""The way to the database: engine, time-outs, schema check, and commits whose answer is lost."""

import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from hostler.ledger.errors import LedgerUnavailableError
from hostler.stores.faults import POOL_TIMEOUT_S, STATEMENT_TIMEOUT_S
from hostler.stores.tables import HEAD, SCHEMA, VERSION_TABLE

CONNECT_TIMEOUT_S: Final = 5

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
