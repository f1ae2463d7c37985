"""Writes the fixture of a release: live leases in every state, as rows of its schema. Run it once before a release:

``python -m tests.upgrade.make_fixture tests/data/upgrade/0002.json``
"""

import asyncio
import contextlib
import json
import sys
from datetime import timedelta
from pathlib import Path

from tests.session_postgres import shared_server
from tests.sim.loop import run_simulated
from tests.sim.stage import TO_RUN, Phase, admitted, through, until
from tests.sim.world import SimCrashError
from tests.stores.scratch import run_sql
from tests.upgrade.pg_world import all_rows, machines_of, nodes_of, pg_world

from hostler.lifecycle.converge import converge
from hostler.lifecycle.reap import confirm_epoch
from hostler.lifecycle.release import begin_release
from hostler.stores import migrate
from hostler.stores.tables import HEAD


async def live(world):
    """Six leases: asked for, killed in a launch, in setup, training, let go and refused by the cloud, ended."""
    world.nodes.total_steps = 3000
    confirm_epoch(world.fleet(), who="person")
    ids = [admitted(world, number, nodes=2 if number == 3 else 1) for number in range(6)]
    await through(world, ids[5], TO_RUN[:5])
    for phase in (Phase.BACKUP, Phase.RELEASE, Phase.RECEIPT):
        await until(world, ids[5], phase)
    await through(world, ids[4], TO_RUN[:4])
    await through(world, ids[3], TO_RUN[:5])
    await until(world, ids[3], Phase.RUN, for_s=100)
    await through(world, ids[2], TO_RUN[:3])
    await until(world, ids[2], Phase.SETUP, for_s=0)
    await through(world, ids[1], TO_RUN[:2])
    with contextlib.suppress(SimCrashError):
        await until(world, ids[1], Phase.LAUNCH, fleet=world.fleet(world.process(crash_at="launch:after")))
    world.cloud.refuses_end_until = world.now() + timedelta(seconds=3600)
    begin_release(world.fleet(), ids[4], who="person", reason="not needed")
    await converge(world.fleet(), ids[4], Phase.RELEASE, holder="x", budget_s=30)
    await asyncio.sleep(5)
    return world.now().isoformat()


def main(path):
    with shared_server() as server:
        url = server.ensure_database("fixture")
        migrate.upgrade(url)
        world = pg_world(url)
        at = run_simulated(live(world))
        world.ledger.close()
        rows = all_rows(url)
        document = {
            "schema": HEAD,
            "at": at,
            "rows": rows,
            "machines": machines_of(world.cloud),
            "nodes": nodes_of(world.nodes),
        }
        run_sql(server.url("postgres"), "DROP DATABASE fixture WITH (FORCE)")
    Path(path).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
