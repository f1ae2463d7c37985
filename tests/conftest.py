"""Session-wide fixtures. Unit tests may talk to loopback only."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Times depend on what else the machine does; they say nothing about the code.
settings.register_profile("hostler", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("soak", parent=settings.get_profile("hostler"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "hostler"))


def pytest_addoption(parser):
    parser.addoption(
        "--live", choices=("core", "all"), default="all", help="which scenarios are played on a live Airflow (default: all)"
    )
    parser.addoption(
        "--crashes", choices=("chosen", "all"), default="chosen", help="rows of the table of crashes (default: chosen)"
    )


@pytest.fixture(scope="session")
def postgres_server():
    """The session's embedded PostgreSQL (``EmbeddedPostgres``), running; ``ensure_database(name)`` gives an own database."""
    from tests.session_postgres import shared_server

    with shared_server() as server:
        yield server


@pytest.fixture(scope="session")
def ledger_database(postgres_server):
    """Address of this worker's ledger database, migrated, with whatever earlier tests left in it."""
    from hostler.stores import migrate

    url = postgres_server.ensure_database(f"ledger_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}")
    migrate.upgrade(url)
    return url


@pytest.fixture
def ledger_url(ledger_database):
    """Address of an empty ledger database."""
    from tests.stores.scratch import empty

    empty(ledger_database)
    return ledger_database
