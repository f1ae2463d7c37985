"""``hostler ledger``: the database of the ledger."""

import argparse

from hostler.ledger.errors import LedgerUnavailableError
from hostler.stores import migrate
from hostler.stores.embedded import EmbeddedPostgres
from hostler.wiring.settings import embedded_of, ledger_url, read_fleet_file


def start(options: argparse.Namespace) -> int:
    """Starts the embedded PostgreSQL and upgrades the schema."""
    del options
    server = _server()
    server.start()
    migrate.upgrade(server.url("hostler"))
    print(f"ledger: PostgreSQL in {server.folder} is up, schema {migrate.current(server.url('hostler'))}")
    return 0


def stop(options: argparse.Namespace) -> int:
    """Stops the embedded PostgreSQL."""
    del options
    server = _server()
    server.stop()
    print(f"ledger: PostgreSQL in {server.folder} is stopped")
    return 0


def status(options: argparse.Namespace) -> int:
    """Says where the ledger is and whether its schema fits. Exit status 1 when it does not or cannot be reached."""
    del options
    fleet = read_fleet_file()
    server = embedded_of(fleet)
    if server is not None and not server.is_running():
        print(f"ledger: embedded in {server.folder}: not running (hostler ledger start)")
        return 1
    url = ledger_url(fleet)
    found, fits = migrate.current(url), migrate.is_current(url)
    print(
        f"ledger: {'embedded' if server else 'external'}, schema {found or 'none'}{'' if fits else ' (hostler ledger upgrade)'}"
    )
    return 0 if fits else 1


def upgrade(options: argparse.Namespace) -> int:
    """Upgrades the schema."""
    del options
    url = ledger_url(read_fleet_file())
    migrate.upgrade(url)
    print(f"ledger: schema {migrate.current(url)}")
    return 0


def downgrade(options: argparse.Namespace) -> int:
    """Takes the schema back; leases, nodes and events stay. A revision that would drop the tables is refused."""
    if not options.to.isdecimal():
        raise ValueError(f"--to {options.to!r}: the number of a schema is needed, such as 0001")
    url = ledger_url(read_fleet_file())
    migrate.downgrade(url, options.to)
    print(f"ledger: schema {migrate.current(url)}")
    return 0


def _server() -> EmbeddedPostgres:
    """Returns the embedded server. Raises LedgerUnavailableError when the ledger is somewhere else."""
    server = embedded_of(read_fleet_file())
    if server is None:
        raise LedgerUnavailableError("ledger.url names a PostgreSQL of your own: start and stop it there")
    return server
