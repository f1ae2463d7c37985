"""The guards on the real checks: Great Expectations is loaded once for all of them."""

import asyncio
import importlib.util
import logging
from datetime import UTC, datetime
from itertools import count

import pytest
from tests.lifecycle.idle_world import good, idle_world, record
from tests.sim.stage import events, fair_world, run_simulated

from hostler.cloud.inventory import ThingKind
from hostler.cloud.tags import DEPLOYMENT, LEASE
from hostler.config.schema import FleetFile
from hostler.lifecycle.policies import GuardBatch, GuardVerdict, Housekeeping, SweepPolicy
from hostler.lifecycle.reap import confirm_epoch
from hostler.lifecycle.scale_down import scale_down
from hostler.lifecycle.sweep import sweep
from hostler.wiring.guards import suite_guard

pytestmark = [
    pytest.mark.checks,
    pytest.mark.skipif(importlib.util.find_spec("great_expectations") is None, reason="the extra `checks` is not installed"),
]

IDLE = (0.0,) * 8


def fleet_file(folder):
    return FleetFile.model_validate(
        {
            "deployment": "sim",
            "limits": {"usd_per_hour": 1, "usd_per_run": 1, "nodes": 1},
            "backup": {"uri": "s3://b/p"},
            "clouds": {"fake": {"regions": ["fake-north"]}},
            "cost_sweep": {"folder": str(folder), "reports_kept": 5},
        }
    )


@pytest.fixture(scope="module")
def guard(tmp_path_factory):
    ticks = count()
    return suite_guard(
        fleet_file(tmp_path_factory.mktemp("checks")), lambda: datetime(2026, 12, 1, second=next(ticks), tzinfo=UTC)
    )


def test_guard_when_one_sensor_of_40_idle_nodes_is_implausible_then_not_one_is_ended(guard, capfd, caplog):
    """39 nodes are proved idle by themselves, and the blast radius would let all of them go."""

    async def play():
        world, ids = await idle_world(leases=40)
        first = await scale_down(world.fleet(), who="scale", guard=good, dry_run=False)
        assert {one.action for one in first.findings} == {"mark"}
        await asyncio.sleep(901)
        world.nodes.told[f"{ids[7]}-0-1"] = record(IDLE, changes={3: {"utilisation_ratios": (37.0,) * 8}})
        second = await scale_down(world.fleet(), who="scale", guard=guard, dry_run=False)
        assert second.guard.problems == (f"plausible: most_ratio: 1 rows, such as {ids[7]}-0-1, i-00000008",)
        assert second.ended == ()
        assert len(world.cloud.live()) == 40
        (event,) = events(world, None, "scale_down.checks_failed")
        assert dict(event.evidence)["report"].endswith("index.html")
        world.nodes.told.clear()
        third = await scale_down(world.fleet(), who="scale", guard=guard, dry_run=False)
        assert (third.guard.problems, len(third.ended)) == ((), 39)  # the fortieth was busy, and is marked anew

    with caplog.at_level(logging.INFO):
        run_simulated(play())
    out, err = capfd.readouterr()
    assert out == err == ""
    assert [one for one in caplog.records if one.name.startswith("great_expectations")] == []


ROW = {
    "node": "n",
    "provider_id": "i",
    "is_answered": 1,
    "newest_age_s": 0.0,
    "coverage_ratio": 1.0,
    "least_ratio": 0.0,
    "most_ratio": 0.0,
    "accelerators_told": 8,
    "accelerators_bought": 8,
    "most_ratio_at_work": None,
    "least_cpu_ratio": 0.01,
    "most_cpu_ratio": 0.02,
}


def test_guard_when_telemetry_is_wrong_in_several_ways_then_each_check_is_named(guard):
    rows = [{**ROW, "node": f"n{index}", "provider_id": f"i{index}"} for index in range(10)]
    for index in range(3):
        rows[index] |= {"newest_age_s": 400.0, "accelerators_told": 7, "most_ratio_at_work": 0.0}
        rows[index + 3] |= {"is_answered": 0, "newest_age_s": None, "least_ratio": None, "most_ratio": None}
    rows[9] |= {"node": "n8", "provider_id": "i8", "least_cpu_ratio": -0.5}
    problems = "\n".join(guard(GuardBatch(kind="telemetry", rows=rows, facts={"node_count": 12})).problems)
    for check in (
        "complete: a row for each node: found 10",
        "complete: each node once: 2 rows",
        "complete: each machine once: 2 rows",
        "complete: nodes that answered: 3 rows",
        "complete: accelerators: 3 rows",
        "fresh: newest sample: 3 rows",
        "plausible: least_cpu_ratio: 1 rows",
        "plausible: nodes at work show it: 3 rows",
    ):
        assert check in problems


THING = {
    "key": "fake/r/v",
    "thing_id": "v",
    "place": "fake/r",
    "kind": "volume",
    "owner": "ours",
    "age_s": 1.0,
    "size_gib": 10.0,
    "usd_per_month": 0.8,
    "is_orphan": 0.0,
}
FACTS = {"errors": [], "places": ["fake/r", "fake/empty"], "known": ["v3"], "last_count": 10}


def things(count=12, **changes):
    return [{**THING, "key": f"fake/r/v{index}", "thing_id": f"v{index}", **changes} for index in range(count)]


def test_guard_when_inventory_is_whole_then_good_though_one_region_holds_nothing(guard):
    few = [*things(4), *things(1, key="x", thing_id="x", owner="foreign", is_orphan=None, usd_per_month=None, size_gib=None)]
    verdict = guard(GuardBatch(kind="inventory", rows=few, facts={**FACTS, "last_count": 10}))
    assert verdict.problems == ()
    assert verdict.report.endswith("index.html")


def test_guard_when_inventory_is_wrong_in_several_ways_then_each_check_is_named(guard):
    rows = things(11, is_orphan=1.0, owner="orphan")
    rows[0] |= {"age_s": 5000.0}
    rows[1] |= {"kind": "bucket"}
    rows[2] |= {"size_gib": 0.0}
    rows[3] |= {"usd_per_month": -1.0, "thing_id": "other", "place": "fake/elsewhere"}
    rows[4] |= {"key": "fake/r/v5"}
    facts = {**FACTS, "errors": ["fake/r: CloudUnavailableError: away"], "last_count": 40}
    problems = "\n".join(guard(GuardBatch(kind="inventory", rows=rows, facts=facts)).problems)
    for check in (
        "complete: every region was listed (fake/r: CloudUnavailableError: away)",
        "complete: only regions of ours: 1 rows",
        "complete: the ledger's own machines",
        "complete: as many as last time: found 11",
        "plausible: each thing once: 2 rows",
        "plausible: kinds: 1 rows",
        "plausible: sizes: 1 rows",
        "plausible: costs: 1 rows",
        "plausible: orphans among ours: found 1.0",
        "fresh: lists: 1 rows",
    ):
        assert check in problems


def test_guard_when_40_volumes_seem_to_be_nobodys_then_the_ledger_is_doubted_and_not_one_is_removed(guard):
    """A ledger restored from before their leases: each by itself is an orphan, and long enough marked."""

    async def play():
        policy = SweepPolicy(mode=Housekeeping.ACT, grace_s=0)
        world = fair_world(settings_changes={"cost_sweep": policy, "destroyed_per_tick": 100})
        confirm_epoch(world.fleet(), who="person")
        for number in range(40):
            world.cloud.put_thing(ThingKind.VOLUME, {DEPLOYMENT: "sim", LEASE: f"lost{number}"}, size_gib=10)
        first = await sweep(world.fleet(), who="sweep", guard=lambda _batch: GuardVerdict(), dry_run=False)
        assert {one.action for one in first.findings} == {"mark"}
        await asyncio.sleep(60)
        second = await sweep(world.fleet(), who="sweep", guard=guard, dry_run=False)
        assert second.guard.problems == ("plausible: orphans among ours: found 1.0",)
        assert len(world.cloud.things) == 40
        assert events(world, None, "cost_sweep.checks_failed")

    run_simulated(play())
