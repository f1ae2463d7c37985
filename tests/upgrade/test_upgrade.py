"""Live leases of an earlier release go through an upgrade, end right, and come back through a downgrade: none is lost."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from tests.sim.loop import run_simulated
from tests.sim.stage import TO_END, Reached, through
from tests.sim.world import run_ref
from tests.stores.scratch import run_sql
from tests.upgrade.pg_world import TABLES, all_rows, moment_of, pg_world, restore

from hostler.ledger import codec
from hostler.lifecycle.reap import reconcile
from hostler.model.enums import LeaseState, Phase
from hostler.model.lease import lease_id_for
from hostler.stores import migrate

FIXTURES = sorted((Path(__file__).parents[1] / "data" / "upgrade").glob("*.json"))
KEYS = {
    "leases": "lease_id",
    "intents": "intent_id",
    "nodes": "node_name",
    "jobs": "job_id",
    "backups": "backup_id",
    "receipts": "lease_id",
}


def load(url, document):
    """Makes a database of the fixture's schema with its rows."""
    migrate.upgrade(url, document["schema"])
    statements = ["SET session_replication_role = replica"]
    for table in TABLES:
        for row in document["rows"][table]:
            text = json.dumps(row).replace("'", "''")
            overriding = "OVERRIDING SYSTEM VALUE " if table == "events" else ""
            columns = ", ".join(row)
            statements.append(
                f"INSERT INTO hostler.{table} ({columns}) {overriding}"  # noqa: S608 - names and rows of our own fixture
                f"SELECT {columns} FROM json_populate_record(NULL::hostler.{table}, '{text}')"
            )
    last = max((row["sequence"] for row in document["rows"]["events"]), default=0)
    statements.append(f"ALTER TABLE hostler.events ALTER COLUMN sequence RESTART WITH {last + 1}")
    run_sql(url, *statements)


def rows_of(url):
    return all_rows(url, TABLES)


@pytest.fixture(params=FIXTURES, ids=lambda path: path.stem)
def document(request):
    return json.loads(request.param.read_text())


def test_fixtures_when_looked_for_then_the_releases_are_there():
    assert "0001" in {path.stem for path in FIXTURES}


def test_upgrade_when_leases_are_live_then_all_go_on_and_end_right(bare_url, document):
    load(bare_url, document)
    migrate.upgrade(bare_url)
    world = pg_world(bare_url)

    async def play():
        asyncio.get_running_loop()._sim_clock[0] = moment_of(document)
        restore(world, document)
        machines = len(world.cloud.machines)
        before = {lease.lease_id for lease in world.ledger.list_leases()}
        await reconcile(world.fleet(), who="reap", dry_run=False)
        for number in (1, 2, 3):
            outcome = await through(world, lease_id_for(run_ref(number)), TO_END, for_s=20000)
            assert isinstance(outcome, Reached), outcome
        assert len(world.cloud.machines) == machines, "each lease went on with the machines it had"
        assert isinstance(await through(world, lease_id_for(run_ref(0)), TO_END, for_s=20000), Reached)
        assert isinstance(await through(world, lease_id_for(run_ref(4)), (Phase.RELEASE,)), Reached)
        training = world.ledger.view(lease_id_for(run_ref(3)))
        assert len(training.jobs) == 1, "the running job was attached to, not started again"
        assert {lease.lease_id for lease in world.ledger.list_leases()} == before
        assert {lease.state for lease in world.ledger.list_leases()} == {LeaseState.RELEASED}
        await asyncio.sleep(timedelta(hours=1).total_seconds())
        assert world.cloud.live() == []

    run_simulated(play())
    world.ledger.close()


def test_downgrade_when_the_new_program_has_written_then_every_row_is_there_with_all_that_the_old_one_knew(bare_url, document):
    load(bare_url, document)
    before = rows_of(bare_url)
    migrate.upgrade(bare_url)
    world = pg_world(bare_url)

    async def play():
        asyncio.get_running_loop()._sim_clock[0] = moment_of(document)
        restore(world, document)
        await through(world, lease_id_for(run_ref(2)), (Phase.SETUP, Phase.VALIDATE))

    run_simulated(play())
    world.ledger.close()
    migrate.downgrade(bare_url, document["schema"])
    after = rows_of(bare_url)
    for table, key in KEYS.items():
        known = {row[key]: row for row in before[table]}
        found = {row[key]: row for row in after[table]}
        assert known.keys() <= found.keys()
        for name, row in known.items():
            assert row["body"].keys() <= found[name]["body"].keys(), "a field that the old program needs is gone"
            assert found[name]["body"]["format"] == row["body"]["format"]
            codec.decode(found[name]["body"])
    assert len(after["events"]) >= len(before["events"])
    migrate.upgrade(bare_url)
    assert migrate.is_current(bare_url)
