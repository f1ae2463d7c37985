"""One lifecycle run on a stage, followed to its end."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hostler.ledger.errors import LedgerError
from hostler.model.lease import LeaseView, lease_id_for
from hostler.model.request import RunRef
from hostler.stores.postgres import PostgresLedger
from hostler.wiring.settings import ledger_url, read_fleet_file
from hostler_sandbox.airflow_client import AirflowApiError, AirflowClient
from hostler_sandbox.demo.loss import NodeTaker
from hostler_sandbox.demo.stage import Stage
from hostler_sandbox.demo.story import Story

DAG: Final = "hostler_node_lifecycle"
_FOLLOW_S: Final = 1.0
_ENDED: Final = frozenset({"success", "failed"})

REQUEST: Final[Mapping[str, Any]] = {
    "accelerator": "H100",
    "accelerators_per_node": 8,
    "nodes": 2,
    "capacity_types": ["spot"],
    "recipe": "digits",
    "recipe_options": {"steps": "300", "step_delay_s": "0.08"},
    "checkpoint_interval_steps": 60,
    "max_cost_usd": 50.0,
}
"""Two 8-GPU spot nodes; the delay a step gives the run the length at which checkpoints and heartbeats can be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How a run ended: Airflow's word, its tasks, and the record."""

    state: str
    tasks: dict[str, dict[str, Any]]
    view: LeaseView


class RunTimeoutError(TimeoutError):
    """The run did not end in time."""


def follow(stage: Stage, story: Story, conf: Mapping[str, Any], taker: NodeTaker, timeout_s: float) -> Followed:
    """Triggers a run over REST with a JSON web token and tells its story to the end; the taker strikes when its moment comes.

    Raises:
        RunTimeoutError: not within ``timeout_s``.
    """
    client = stage.client()
    run_id = f"demo-{secrets.token_hex(4)}"
    _trigger_once_parsed(stage, conf, run_id, timeout_s)
    story.say(f"triggered {DAG} over REST as {run_id}")
    lease_id = lease_id_for(RunRef(dag_id=DAG, run_id=run_id))
    ledger = PostgresLedger(ledger_url(read_fleet_file(stage.fleet_file)))
    seen, end = 0, time.monotonic() + timeout_s
    try:
        while True:
            state, tasks = _look(client, run_id)
            story.tell_tasks(tasks)
            events = ledger.list_events(lease_id, after=seen)
            story.tell_events(events)
            seen = events[-1].sequence if events else seen
            if seen and (done := taker.look(ledger.view(lease_id))):
                story.say(f"!!! {done}")
            if state in _ENDED:
                return Followed(state=state, tasks=tasks, view=ledger.view(lease_id))
            if time.monotonic() > end:
                raise RunTimeoutError(f"{run_id} is still {state} after {timeout_s:.0f} s")
            time.sleep(_FOLLOW_S)
    finally:
        ledger.close()


def _look(client: AirflowClient, run_id: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """Returns the run's state and its tasks; ``unknown`` and none when the API server is too busy to answer."""
    try:
        return str(client.run(DAG, run_id)["state"]), client.tasks(DAG, run_id)
    except AirflowApiError as error:
        if 0 < error.status < 500:  # noqa: PLR2004  # what the server refuses stays refused
            raise
        return "unknown", {}


def restore(stage: Stage, lease_id: str, into: Path) -> tuple[int, str]:
    """Runs ``hostler restore`` as a person would; returns (objects unpacked, what it said). 0 objects: it refused."""
    command = [sys.executable, "-m", "hostler.cli.main", "restore", lease_id, "--into", str(into)]

    environment = {**os.environ, **stage.environment()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    said = (done.stdout + done.stderr).strip()
    objects = int(done.stdout.split(":")[1].split()[0]) if done.returncode == 0 else 0
    return objects, said


def _trigger_once_parsed(stage: Stage, conf: Mapping[str, Any], run_id: str, timeout_s: float) -> None:
    """Triggers as soon as Airflow has parsed the Dag."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            stage.client().trigger(DAG, conf, run_id)
        except AirflowApiError as error:
            if error.status != 404 or time.monotonic() > end:  # noqa: PLR2004  # Not Found: not parsed yet
                raise
            time.sleep(0.5)
        else:
            return


def explain(stage: Stage, lease_id: str) -> str:
    """Returns what the record says of a lease, or why it cannot be read."""
    from hostler.lifecycle.explain import why

    try:
        ledger = PostgresLedger(ledger_url(read_fleet_file(stage.fleet_file)))
        try:
            return why(ledger.view(lease_id), ledger.list_events(lease_id))
        finally:
            ledger.close()
    except LedgerError as error:
        return str(error)
