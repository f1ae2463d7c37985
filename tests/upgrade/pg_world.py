"""A simulated world over a real PostgreSQL ledger: what is written to a fixture, and what goes on from one."""

from dataclasses import asdict
from datetime import datetime

from tests.sim.nodes import SimJob
from tests.sim.world import BEGIN, World, make_world
from tests.stores.scratch import run_sql

from hostler.drivers.fake.cloud import FakeCloud
from hostler.drivers.fake.machine import FakeMachine
from hostler.model.enums import CapacityType
from hostler.reach.port import JobOrder
from hostler.stores.postgres import PostgresLedger

TABLES = ("leases", "intents", "nodes", "jobs", "backups", "receipts", "events", "stock_outs", "switches", "meta")
TIMES = ("made_at", "visible_at", "runs_at", "order_at", "gone_at", "off_at")


class SimClockLedger(PostgresLedger):
    """PostgreSQL's rows under the simulator's clock."""

    def __init__(self, url, clock):
        super().__init__(url)
        self.clock = clock

    def now(self):
        return self.clock()


def pg_world(url) -> World:
    world = make_world(7, ledger_type=lambda clock: SimClockLedger(url, clock), lags=0.0)
    world.checkers = []
    World.check = lambda self: None if self is world else _check(self)
    return world


_check = World.check


def machines_of(cloud: FakeCloud) -> list:
    rows = []
    for machine in cloud.machines.values():
        row = {name: getattr(machine, name) for name in ("provider_id", "region", "zone", "name", "tags", "token", "address")}
        row |= {name: None if getattr(machine, name) is None else getattr(machine, name).isoformat() for name in TIMES}
        rows.append({**row, "kind": machine.kind.name, "capacity_type": machine.capacity_type.value})
    return rows


def nodes_of(nodes) -> dict:
    return {
        "setups": [[*key, at] for key, at in nodes.setups.items()],
        "jobs": [
            {"provider_id": provider_id, "started_at": rank.started_at, "order": order_of(rank.order)}
            for ranks in nodes.jobs.values()
            for provider_id, rank in ranks.items()
        ],
    }


def order_of(order: JobOrder) -> dict:
    kept = {"job_id", "attempt_token", "rank", "world_size", "restore_step", "expires_in_s"}
    return {name: value for name, value in asdict(order).items() if name in kept}


def restore(world, document) -> None:
    """Brings machines and nodes to what they were."""
    for row in document["machines"]:
        kind = next(kind for kind in world.cloud.types if kind.name == row["kind"])
        times = {name: None if row[name] is None else datetime.fromisoformat(row[name]) for name in TIMES}
        rest = {name: row[name] for name in ("provider_id", "region", "zone", "name", "tags", "token", "address")}
        machine = FakeMachine(**rest, **times, kind=kind, capacity_type=CapacityType(row["capacity_type"]))
        world.cloud.machines[machine.provider_id] = machine
    world.cloud._made = len(world.cloud.machines)
    for provider_id, job_id, at in document["nodes"]["setups"]:
        world.nodes.setups[provider_id, job_id] = at
    for rank in document["nodes"]["jobs"]:
        order = JobOrder(argv=("train",), **rank["order"])
        ranks = world.nodes.jobs.setdefault(order.job_id, {})
        ranks[rank["provider_id"]] = SimJob(order=order, provider_id=rank["provider_id"], started_at=rank["started_at"])


def all_rows(url, tables=TABLES) -> dict:
    """All rows of all tables, as JSON documents."""
    wanted = {table: f"SELECT row_to_json(t) FROM hostler.{table} t" for table in tables}  # noqa: S608 - names of our own
    return {table: [row[0] for row in run_sql(url, statement)] for table, statement in wanted.items()}


def moment_of(document) -> float:
    return (datetime.fromisoformat(document["at"]) - BEGIN).total_seconds()
