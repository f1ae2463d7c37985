"""Both ledgers, for one suite."""

import secrets
from datetime import UTC, datetime

import pytest
from tests import samples
from tests.stores.scratch import run_sql

from hostler.stores.memory import MemoryLedger
from hostler.stores.postgres import PostgresLedger


@pytest.fixture(params=["memory", "postgres"])
def ledger(request):
    """An empty ledger of each kind in turn."""
    if request.param == "memory":
        yield MemoryLedger(lambda: datetime.now(tz=UTC))
        return
    store = PostgresLedger(request.getfixturevalue("ledger_url"))
    yield store
    store.close()


@pytest.fixture
def postgres(ledger_url):
    """An empty PostgreSQL ledger."""
    store = PostgresLedger(ledger_url)
    yield store
    store.close()


@pytest.fixture
def lease(ledger):
    """An admitted lease."""
    return ledger.admit(samples.lease(), []).lease


@pytest.fixture
def fence(ledger, lease):
    """The newest fence of the lease."""
    return ledger.take_fence(lease.lease_id, "dag/run/launch/1")


@pytest.fixture
def bare_url(postgres_server):
    """Address of a new database without tables, dropped at the end."""
    name = f"bare_{secrets.token_hex(6)}"
    url = postgres_server.ensure_database(name)
    yield url
    run_sql(postgres_server.url("postgres"), f"DROP DATABASE {name} WITH (FORCE)")
