from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg.errors import RestrictViolation
from sqlalchemy import inspect
from tests import samples
from tests.stores.scratch import run_sql

from hostler.ledger.errors import LedgerError
from hostler.stores import migrate, tables
from hostler.stores.database import make_engine, read_url

OPTIONS = {
    "include_schemas": True,
    "include_name": lambda name, kind, _: kind != "schema" or name == tables.SCHEMA,
    "include_object": lambda _object, name, _kind, _reflected, _other: name != tables.VERSION_TABLE,
    "version_table": tables.VERSION_TABLE,
    "version_table_schema": tables.SCHEMA,
    "compare_type": True,
    "compare_server_default": True,
}


@pytest.fixture
def connection(bare_url):
    engine = make_engine(read_url(bare_url), pool_size=1)
    with engine.connect() as opened:
        yield opened
    engine.dispose()


def test_head_when_a_step_is_added_then_the_program_asks_for_it():
    scripts = ScriptDirectory.from_config(migrate.config_for(None))
    assert scripts.get_heads() == [tables.HEAD]


def test_tables_when_upgraded_then_they_are_what_the_program_expects(bare_url, connection):
    migrate.upgrade(bare_url)
    context = MigrationContext.configure(connection, opts=OPTIONS)
    assert compare_metadata(context, tables.metadata) == []
    primary = {
        table.name: inspect(connection).get_pk_constraint(table.name, tables.SCHEMA) for table in tables.metadata.sorted_tables
    }
    assert {name: found["constrained_columns"] for name, found in primary.items()} == {
        table.name: [column.name for column in table.primary_key] for table in tables.metadata.sorted_tables
    }


def test_comparison_when_a_table_differs_then_it_is_seen(bare_url, connection):
    migrate.upgrade(bare_url)
    run_sql(bare_url, "ALTER TABLE hostler.jobs DROP COLUMN attempt", "DROP INDEX hostler.intents_live_idx")
    context = MigrationContext.configure(connection, opts=OPTIONS)
    assert [step[0] for step in compare_metadata(context, tables.metadata)] == ["add_index", "add_column"]


def test_schema_when_moved_up_down_and_up_then_each_is_told(bare_url, connection):
    assert (migrate.current(bare_url), migrate.is_current(bare_url)) == (None, False)
    migrate.upgrade(bare_url)
    migrate.upgrade(bare_url)
    assert (migrate.current(bare_url), migrate.is_current(bare_url)) == (tables.HEAD, True)
    migrate.downgrade(bare_url)
    assert (migrate.current(bare_url), migrate.is_current(bare_url)) == (None, False)
    assert inspect(connection).get_table_names(tables.SCHEMA) == [tables.VERSION_TABLE]
    assert run_sql(bare_url, "SELECT 1 FROM pg_proc WHERE pronamespace = 'hostler'::regnamespace") == []
    migrate.upgrade(bare_url)
    assert migrate.is_current(bare_url)


def test_upgrade_when_four_run_at_once_then_all_succeed(bare_url):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate.upgrade, [bare_url] * 4))
    assert migrate.is_current(bare_url)


def test_upgrade_when_it_fails_half_way_then_nothing_of_it_is_left(bare_url, connection):
    run_sql(bare_url, "CREATE SCHEMA hostler", "CREATE TABLE hostler.events (lease_id text)")
    with pytest.raises(LedgerError):
        migrate.upgrade(bare_url)
    assert inspect(connection).get_table_names(tables.SCHEMA) == ["events"]


@pytest.mark.parametrize(
    "operation", ["UPDATE hostler.events SET who = 'x'", "DELETE FROM hostler.events", "TRUNCATE hostler.events"]
)
def test_events_when_somebody_changes_them_then_the_database_refuses(postgres, ledger_url, operation):
    postgres.append_events([samples.event(None)])
    with pytest.raises(RestrictViolation, match="append-only"):
        run_sql(ledger_url, operation)
    assert len(postgres.list_events(None)) == 1
