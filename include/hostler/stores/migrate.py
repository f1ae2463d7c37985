"""Brings the ledger's database to the schema of this program."""

import functools
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, text

from hostler.stores.database import Database, schema_version
from hostler.stores.faults import guarded
from hostler.stores.locks import MIGRATION, take_lock
from hostler.stores.tables import HEAD, SCHEMA

if TYPE_CHECKING:
    from alembic.config import Config


def upgrade(url: str, revision: str = "head") -> None:
    """Runs the missing migrations, all or none. Does nothing when none is missing.

    Raises:
        LedgerUnavailableError: the database cannot be reached or changed.
    """
    with _Migration(url) as migration:
        migration.run("upgrade", revision)


def downgrade(url: str, revision: str = "base") -> None:
    """Takes migrations back; ``base`` drops all tables. Raises as ``upgrade`` does."""
    with _Migration(url) as migration:
        migration.run("downgrade", revision)


def current(url: str) -> str | None:
    """Returns the id of the newest migration that ran; None when none did. Raises LedgerUnavailableError."""
    with _Migration(url) as migration:
        return migration.current()


def is_current(url: str) -> bool:
    """True when the database is at the schema that this program needs. Raises LedgerUnavailableError."""
    return current(url) == HEAD


def config_for(connection: Connection | None) -> "Config":
    """Returns Alembic's settings; with a connection they can run migrations on it, without one only list them."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "hostler.stores:migrations")
    config.attributes["connection"] = connection
    return config


class _Migration(Database):
    """A way to the database at whatever schema it is."""

    def __init__(self, address: str) -> None:
        super().__init__(address, pool_size=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @guarded
    def run(self, direction: str, revision: str) -> None:
        """Runs Alembic's command in one transaction, one program at a time."""
        from alembic import command

        move = functools.partial(getattr(command, direction), revision=revision)
        with self.change() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            take_lock(connection, MIGRATION)
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
            move(config_for(connection))

    @guarded
    def current(self) -> str | None:
        """Returns the id of the newest migration that ran, or None."""
        with self.read() as connection:
            return schema_version(connection)

    def _check_schema(self, connection: Connection) -> None:
        """Any schema will do."""
