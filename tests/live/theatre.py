"""What the scenarios have in common: the stage, its Airflow, its ledger, its cloud."""

import json
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from hostler.model.lease import Event, LeaseView, lease_id_for
from hostler.model.request import RunRef
from hostler.stores.postgres import PostgresLedger
from hostler.wiring.settings import ledger_url, read_fleet_file
from hostler_sandbox.airflow_client import AirflowApiError, AirflowClient, wait_until
from hostler_sandbox.demo.stage import Stage

LIFECYCLE = "hostler_node_lifecycle"
DAGS = (LIFECYCLE, "hostler_node_release", "hostler_fleet_reconcile", "hostler_scheduled_run")
SECRET_NAME = "live_test_token"
SECRET = "made-up-6f1d2c-must-be-seen-nowhere"
PATIENCE_S = 900.0
EVERY_S = 2.0


def script(command: str, **changes: Any) -> dict[str, Any]:
    """A request for one small node that runs a command."""
    return {
        "accelerator": "L4",
        "accelerators_per_node": 1,
        "nodes": 1,
        "capacity_types": ["on-demand"],
        "recipe": "script",
        "script": command,
        "max_cost_usd": 50.0,
        **changes,
    }


class Theatre:
    """Safe to use from many threads: each call logs in by itself where it must."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    @cached_property
    def ledger(self) -> PostgresLedger:
        return PostgresLedger(ledger_url(read_fleet_file(self.stage.fleet_file)))

    def client(self, user: str = "admin") -> AirflowClient:
        return self.stage.client(user)

    def wait_for_dags(self) -> None:
        """Until Airflow has parsed all Dags: they are there some time after it is healthy."""
        client = self.client()

        def parsed() -> bool:
            try:
                return all(client.get(f"/dags/{dag}")["dag_id"] == dag for dag in DAGS)
            except AirflowApiError:
                return False

        wait_until(parsed, "the Dags to be parsed", PATIENCE_S)

    def start(self, conf: Mapping[str, Any], run_id: str, user: str = "admin") -> str:
        return self.client(user).trigger(LIFECYCLE, conf, run_id)

    def wait_for_task(self, run_id: str, task_id: str, *states: str) -> dict[str, Any]:
        client = self.client()

        def there() -> dict[str, Any] | None:
            tasks = client.tasks(LIFECYCLE, run_id)
            task = tasks.get(task_id, {})
            over = tasks.get("receipt", {}).get("state") in {"failed", "success", "upstream_failed"}
            assert task.get("state") in states or not over, f"{run_id} ended before {task_id} was {states}"
            return task if task.get("state") in states else None

        return wait_until(there, f"{task_id} of {run_id} to be {states}", PATIENCE_S, EVERY_S)

    def wait_for_triggerer(self, run_id: str, task_id: str) -> dict[str, Any]:
        """Until the task is deferred and a triggerer has taken its trigger up: that comes some time after."""
        self.wait_for_task(run_id, task_id, "deferred")
        client = self.client()

        def held() -> dict[str, Any] | None:
            task = client.tasks(LIFECYCLE, run_id)[task_id]
            return task if task.get("triggerer_job") else None

        return wait_until(held, f"a triggerer to hold {task_id} of {run_id}", PATIENCE_S, EVERY_S)

    def wait_for_job(self, run_id: str) -> None:
        """Until the job runs on the nodes; ``run`` is deferred then."""
        self.wait_for_event(run_id, "job.running")

    def wait_for_event(self, run_id: str, *whats: str) -> Event:
        """Waits in the ledger: a dozen scenarios that ask the API server all the time would be its whole work."""

        def there() -> Event | None:
            events = self.events(run_id)
            found = next((event for event in events if event.what in whats), None)
            over = found is None and any(event.what in {"receipt.written", "request.refused"} for event in events)
            assert not over, f"{run_id} is over, without {whats}"
            return found

        return wait_until(there, f"{whats} of {run_id}", PATIENCE_S, EVERY_S)

    def wait_for_driver(self, run_id: str, try_name: str) -> None:
        """Until this try of a step has taken charge of the lease."""
        holder = f"{LIFECYCLE}/{run_id}/{try_name}"
        wait_until(lambda: any(event.who == holder for event in self.events(run_id)), f"{holder}", PATIENCE_S, EVERY_S)

    def end(self, run_id: str) -> dict[str, Any]:
        """Waits for the run's end; returns ``state``, ``tasks`` (id -> state), ``view``, ``events`` and ``live`` (machines)."""
        client = self.client()
        self.wait_for_event(run_id, "receipt.written", "request.refused")
        state = client.wait_for_run(LIFECYCLE, run_id, PATIENCE_S)
        tasks = {name: task["state"] for name, task in client.tasks(LIFECYCLE, run_id).items()}
        return {
            "state": state,
            "tasks": tasks,
            "view": self.view(run_id),
            "events": self.events(run_id),
            "live": self.live(run_id),
        }

    def view(self, run_id: str) -> LeaseView:
        return self.ledger.view(lease_of(run_id))

    def events(self, run_id: str) -> tuple[Event, ...]:
        return self.ledger.list_events(lease_of(run_id))

    def live(self, run_id: str) -> list[str]:
        """Machines of the run's lease that the cloud itself says are alive."""
        return [machine["machine_id"] for machine in self.machines(run_id) if machine["is_live"]]

    def log(self, run_id: str, task_id: str) -> str:
        """The log of the task's last try."""
        client = self.client()
        return client.log_text(LIFECYCLE, run_id, task_id, client.tasks(LIFECYCLE, run_id)[task_id]["try_number"])

    def machines(self, run_id: str) -> list[dict[str, Any]]:
        return [m for m in self.stage.look("machines")["machines"] if m["tags"].get("hostler:lease") == lease_of(run_id)]


def lease_of(run_id: str) -> str:
    return lease_id_for(RunRef(dag_id=LIFECYCLE, run_id=run_id))


def whats(events: tuple[Event, ...]) -> list[str]:
    return [event.what for event in events]


def hold(seconds: float, check: Callable[[], bool], what: str) -> None:
    """Looks for some time that something stays true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert check(), f"did not hold: {what}"
        time.sleep(EVERY_S)


def text_of(*parts: Any) -> str:
    return json.dumps(parts, default=str)
