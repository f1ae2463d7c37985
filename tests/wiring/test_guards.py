"""The guards on the real checks: Great Expectations is loaded once for all of them."""

import asyncio
import importlib.util
import logging
from datetime import UTC, datetime
from itertools import count

import pytest
from tests.lifecycle.idle_world import good, idle_world, record
from tests.sim.stage import events, run_simulated

from hostler.config.schema import FleetFile
from hostler.lifecycle.policies import GuardBatch
from hostler.lifecycle.scale_down import scale_down
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
