"""SIGKILL at each step of a lifecycle: all of them at once, on one Airflow, and every lease still ends right.

The whole table (``--crashes all``) has every victim at every step; twelve of its rows, chosen so that each victim, each step and
each lie of the cloud is met, are played by `make live`.
"""

from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from tests.live.conftest import options
from tests.live.killing import COMPONENTS, kill
from tests.live.theatre import Theatre, script, whats

from hostler.model.enums import JobState, LeaseState
from hostler_sandbox.demo.stage import Stage

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live"), pytest.mark.sandbox, pytest.mark.timeout(1800)]

STEPS = ("admit", "plan", "acquire", "launch", "setup", "validate", "run", "backup", "release", "receipt")
LOST_ANSWERS = {"launch": "RunInstances", "release": "TerminateInstances"}
"""Step -> the call whose answer the cloud loses once, after it has had its effect."""

QUICK = {
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "45",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "10",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "20",
}
"""Airflow notices what died within a minute instead of its five: the outcome is the same, only sooner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """One row of the table. ``answer_lost``: the cloud's answer is lost at this step, too."""

    victim: str
    step: str
    answer_lost: bool = False

    @property
    def name(self) -> str:
        return f"{self.victim}-at-{self.step}" + ("-answer-lost" if self.answer_lost else "")


CHOSEN = (
    Crash(victim="task", step="launch", answer_lost=True),
    Crash(victim="task", step="release", answer_lost=True),
    Crash(victim="task", step="setup"),
    Crash(victim="worker", step="admit"),
    Crash(victim="worker", step="launch"),
    Crash(victim="worker", step="backup"),
    Crash(victim="triggerer", step="run"),
    Crash(victim="triggerer", step="setup"),
    Crash(victim="scheduler", step="plan"),
    Crash(victim="scheduler", step="validate"),
    Crash(victim="api-server", step="acquire"),
    Crash(victim="api-server", step="receipt"),
)


def is_possible(crash: Crash) -> bool:
    """``run`` begins in the triggerer: no task's process exists to be killed."""
    return crash.victim in COMPONENTS or crash.step != "run"


ALL = tuple(
    crash
    for victim in ("task", "worker", *COMPONENTS)
    for step in STEPS
    for lost in ((False, True) if step in LOST_ANSWERS else (False,))
    if is_possible(crash := Crash(victim=victim, step=step, answer_lost=lost))
)


@pytest.fixture(scope="module")
def crashed(pytestconfig):
    """Crash -> a call that waits for what became of its run. All are played at once."""
    if pytestconfig.getoption("live") == "core":
        pytest.skip("crashes are played by `make live` and `make soak` only")
    with (
        TemporaryDirectory(prefix="hostler-crash-", ignore_cleanup_errors=True) as folder,
        Stage(options(Path(folder), airflow_env=QUICK)) as stage,
    ):
        theatre = Theatre(stage)
        theatre.wait_for_dags()
        futures: dict[Crash, Future[dict[str, object]]] = {crash: Future() for crash in rows(pytestconfig)}
        for crash, future in futures.items():
            Thread(target=play, args=(theatre, crash, future), name=crash.name, daemon=True).start()
        yield lambda crash: futures[crash].result(timeout=1700)


def rows(config):
    return ALL if config.getoption("crashes") == "all" else CHOSEN


def pytest_generate_tests(metafunc):
    if "crash" in metafunc.fixturenames:
        metafunc.parametrize("crash", rows(metafunc.config), ids=lambda crash: crash.name)


def play(theatre, crash, future):
    """One run, hit once."""
    try:
        run_id = f"crash-{crash.name}"
        if crash.answer_lost:
            theatre.stage.control("fault", kind="answer_lost", action=LOST_ANSWERS[crash.step], count=1)
        theatre.start(script("sleep 15", max_cost_usd=20.0), run_id)
        killed = kill(theatre, run_id, crash.step, crash.victim)
        future.set_result({**theatre.end(run_id), "killed": killed, "machines": theatre.machines(run_id)})
    except BaseException as error:  # noqa: BLE001 - the test that asks raises it
        future.set_exception(error)


def test_lease_when_something_is_killed_then_ends_right(crashed, crash):
    seen = crashed(crash)
    assert seen["live"] == []
    assert seen["view"].lease.state is LeaseState.RELEASED
    assert len(seen["machines"]) == 1, "none bought twice"
    assert seen["state"] == "success", whats(seen["events"])
    assert [job.state for job in seen["view"].jobs] == [JobState.SUCCEEDED], "started once, ended once"
    assert seen["view"].backups[-1].is_verified
    assert seen["view"].receipt.is_complete
