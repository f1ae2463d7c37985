"""Waiting is free: requests that wait on one real triggerer, what they cost, and how those are served whose stock comes.

``python -m tests.bench.waiting [WAITERS]`` (1000) starts an Airflow with the sandbox, and a Dag of sensors that do nothing but wait:
nine of ten for L40S, one of ten for L4, of which no zone has any. It prints the triggerer's memory and the cloud's calls a minute for
10 waiters and for all, then lets the L4 come and counts who was served.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hostler.cli.table import render
from hostler.ledger.port import StockOut
from hostler.stores.postgres import PostgresLedger
from hostler.wiring.settings import ledger_url, read_fleet_file
from hostler_sandbox.airflow_client import AirflowClient, wait_until
from hostler_sandbox.demo.stage import Stage, StageOptions

DAG = """
from airflow.sdk import DAG
from hostler_sensors.capacity import CapacityAvailableSensor

for count in {counts}:
    with DAG(dag_id=f"waiting_{{count}}", schedule=None, catchup=False, is_paused_upon_creation=False, max_active_tasks=2000):
        for number in range(count):
            CapacityAvailableSensor(
                task_id=f"wait_{{number}}", accelerator="L4" if number % 10 == 0 else "L40S", accelerators_per_node=1,
                capacity_types=("on-demand",), poke_interval=10, timeout=3600,
            )
"""
FEW = 10
LOOK_S = 60.0


def main(waiters: int) -> int:
    """Plays and prints; returns 0 when all whose stock came were served, and nobody else."""
    with TemporaryDirectory(prefix="hostler-waiting-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        (place / "dags").mkdir()
        (place / "dags" / "waiting.py").write_text(DAG.format(counts=[FEW, waiters]))
        options = StageOptions(
            folder=place,
            limits={"nodes": 10_000, "usd_per_hour": 1_000_000},
            airflow_env={
                "AIRFLOW__CORE__DAGS_FOLDER": str(place / "dags"),
                "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": "2000",
                "AIRFLOW__TRIGGERER__CAPACITY": "2000",
                "AIRFLOW__SCHEDULER__MAX_TIS_PER_QUERY": "256",
            },
            say=lambda words: print(words, flush=True),  # noqa: T201
        )
        with Stage(options) as stage:
            return play(stage, waiters)


def play(stage: Stage, waiters: int) -> int:
    """Lets few wait, then many; then the stock comes."""
    client, rows = stage.client(), []
    with memory_of_no_stock(stage) as forget:
        for count in (FEW, waiters):
            client_wait_for_dag(client, f"waiting_{count}")
            began = time.monotonic()
            run_id = client.trigger(f"waiting_{count}", {}, f"all-{count}")
            wait_for_states(client, count, run_id, deferred=count)
            took_s = time.monotonic() - began
            before = len(stage.look("journal")["entries"])
            time.sleep(LOOK_S)  # the window in which calls are counted
            calls = (len(stage.look("journal")["entries"]) - before) * 60 / LOOK_S
            rows.append((str(count), f"{took_s:.0f}", f"{triggerer_mib(stage):.0f}", f"{calls:.0f}"))
        began = time.monotonic()
        forget("L4")
        wanted = waiters // 10
        wait_for_states(client, waiters, run_id, success=wanted)
        served_s = time.monotonic() - began
        time.sleep(20)  # two looks of every waiter: time for one whose stock has not come to be served by mistake
        last = states(client, waiters, run_id)
    print(render(("WAITERS", "S UNTIL ALL WAIT", "TRIGGERER MIB", "CLOUD CALLS A MINUTE"), rows))  # noqa: T201
    print(f"{last.get('success', 0)} of {waiters} served in {served_s:.0f} s after stock came for {wanted}; the others: {last}")  # noqa: T201
    return 0 if last.get("success") == wanted and last.get("deferred") == waiters - wanted else 1


@contextmanager
def memory_of_no_stock(stage: Stage) -> Iterator[Any]:
    """The shared memory says of every zone that it has none; the yielded call forgets it for one accelerator."""
    ledger = PostgresLedger(ledger_url(read_fleet_file(stage.fleet_file)))
    types = {"L4": "g6.xlarge", "L40S": "g6e.xlarge"}

    def remember(accelerator: str, for_s: float) -> None:
        from datetime import timedelta

        now = ledger.now()
        subject = f"aws/us-east-1//{types[accelerator]}"
        ledger.remember_stock_out(StockOut(subject=subject, until=now + timedelta(seconds=for_s), reason="no stock", count=1))

    for accelerator in types:
        remember(accelerator, 7200)
    try:
        yield lambda accelerator: remember(accelerator, 0.001)
    finally:
        ledger.close()


def client_wait_for_dag(client: AirflowClient, dag_id: str) -> None:
    from hostler_sandbox.airflow_client import AirflowApiError

    def parsed() -> bool:
        try:
            return bool(client.get(f"/dags/{dag_id}")["dag_id"])
        except AirflowApiError:
            return False

    wait_until(parsed, f"{dag_id} to be parsed", 300)


def wait_for_states(client: AirflowClient, count: int, run_id: str, **wanted: int) -> None:
    """Until so many tasks of the run are in each of these states, or more."""

    def there() -> bool:
        now = states(client, count, run_id)
        return all(now.get(state, 0) >= number for state, number in wanted.items())

    wait_until(there, f"{wanted} of {run_id}", 1200, 2)


def states(client: AirflowClient, count: int, run_id: str) -> dict[str, int]:
    """State -> how many tasks of the run are in it."""
    found: dict[str, int] = {}
    for offset in range(0, count, 100):
        page = client.get(f"/dags/waiting_{count}/dagRuns/{run_id}/taskInstances", limit=100, offset=offset)
        for task in page["task_instances"]:
            found[str(task["state"])] = found.get(str(task["state"]), 0) + 1
    return found


def triggerer_mib(stage: Stage) -> float:
    """Resident memory of the triggerer and its children."""
    root = stage.airflow.pids()["triggerer"]
    pids = {root}
    while True:
        more = {
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and (entry / "stat").exists() and _parent(entry) in pids
        } - pids
        if not more:
            break
        pids |= more
    return sum(_rss_mib(pid) for pid in pids)


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _rss_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
