"""Airflow's own distributed executor: Celery workers, two triggerers, Redis; fifty lifecycles at once; one of each is killed."""

import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.live.conftest import options
from tests.live.test_crash import QUICK
from tests.live.theatre import Theatre, script

from hostler.model.enums import JobState, LeaseState
from hostler_sandbox.airflow_client import wait_until
from hostler_sandbox.demo.stage import Stage

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live"), pytest.mark.sandbox, pytest.mark.timeout(2400)]

RUNS = 50
CLUSTER = {"celery_workers": 2, "triggerers": 2, "parallelism": 8}


@pytest.fixture(scope="module")
def seen(pytestconfig):
    """What became of all runs."""
    if pytestconfig.getoption("live") == "core":
        pytest.skip("the distributed Airflow is played by `make live` only")
    with (
        TemporaryDirectory(prefix="hostler-celery-", ignore_cleanup_errors=True) as folder,
        Stage(options(Path(folder), airflow_env={**QUICK, "AIRFLOW__HOSTLER__MAX_ACTIVE_RUNS": "64"}, **CLUSTER)) as stage,
    ):
        theatre = Theatre(stage)
        theatre.wait_for_dags()
        yield play(theatre)


def play(theatre):
    began = time.monotonic()
    run_ids = [f"celery-{number}" for number in range(RUNS)]
    for run_id in run_ids:
        theatre.start(script("sleep 30"), run_id)
    killed = [kill_when(theatre, name, after) for name, after in (("worker-1", 5), ("triggerer-2", 15))]
    with ThreadPoolExecutor(8) as pool:
        ended = dict(zip(run_ids, pool.map(theatre.end, run_ids), strict=True))
    print(f"{RUNS} lifecycles in {time.monotonic() - began:.0f} s; killed: {', '.join(killed)}")  # noqa: T201  # the figure of the report
    return {
        "ended": ended,
        "killed": killed,
        "restarts": theatre.stage.airflow.restarts(),
        "machines": {run_id: len(theatre.machines(run_id)) for run_id in run_ids},
        "live": [machine for machine in theatre.stage.look("machines")["machines"] if machine["is_live"]],
    }


def kill_when(theatre, name, jobs_running):
    """Kills the process as soon as so many jobs run on their nodes."""

    def enough():
        events = theatre.ledger.list_events(None, limit=100_000)
        return len({event.lease_id for event in events if event.what == "job.running"}) >= jobs_running

    wait_until(enough, f"{jobs_running} jobs to run", 1200, 2)
    os.kill(theatre.stage.airflow.pids()[name], signal.SIGKILL)
    return name


def test_lifecycles_when_a_worker_and_a_triggerer_are_killed_then_all_end_right(seen):
    assert seen["killed"] == ["worker-1", "triggerer-2"]
    states = Counter(run["state"] for run in seen["ended"].values())
    assert states == {"success": RUNS}
    for run in seen["ended"].values():
        assert run["view"].lease.state is LeaseState.RELEASED
        assert [job.state for job in run["view"].jobs] == [JobState.SUCCEEDED]
        assert run["view"].receipt.is_complete
    assert set(seen["machines"].values()) == {1}, "none bought twice"
    assert seen["live"] == []


def test_components_when_killed_then_started_anew_by_their_keeper(seen):
    assert seen["restarts"]["worker-1"] >= 1
    assert seen["restarts"]["triggerer-2"] >= 1
