"""Kills with SIGKILL what a lifecycle leans on, at a chosen step of it: a task's process, a worker, a component of Airflow.

Nothing is told to anybody: the component's keeper starts it anew, Airflow notices what is gone, and the lease must end right.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.live.theatre import LIFECYCLE, PATIENCE_S, Theatre

from hostler_sandbox.airflow_client import wait_until

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
VICTIMS = ("task", "worker", *COMPONENTS)
"""``task``: the process in which an operator runs. ``worker``: the executor's process that supervises it."""


def kill(theatre: Theatre, run_id: str, step: str, victim: str) -> str:
    """Waits until the step is under way, kills the victim; returns what was killed, in words."""
    if victim in COMPONENTS:
        wait_for_step(theatre, run_id, step)
        pid = theatre.stage.airflow.pids()[victim]
        os.kill(pid, signal.SIGKILL)
        return f"{victim} (pid {pid})"
    supervisor = wait_until(lambda: supervisor_of(theatre, run_id, step), f"a process of {step}", PATIENCE_S, 0.1)
    children = wait_until(lambda: list(children_of(supervisor)), f"the task of {step}", 30, 0.05)
    pid = supervisor if victim == "worker" else children[0]
    os.kill(pid, signal.SIGKILL)
    return f"{victim} of {step} (pid {pid})"


def wait_for_step(theatre: Theatre, run_id: str, step: str) -> None:
    """Until the step runs or is deferred."""
    theatre.wait_for_task(run_id, step, "running", "deferred")


def supervisor_of(theatre: Theatre, run_id: str, step: str) -> int | None:
    """Returns the pid of the executor's process that supervises the step's task now; None when there is none.

    The task's own process is forked from it and bears the same title.
    """
    task = theatre.client().tasks(LIFECYCLE, run_id).get(step)
    if not task or task["state"] != "running":
        return None
    bearers = {pid for pid, line in command_lines() if "airflow worker" in line and task["id"] in line}
    return next((pid for pid in bearers if parent_of(pid) not in bearers), None)


def command_lines() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def parent_of(pid: int) -> int:
    """Returns the parent's pid; 0 when the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def children_of(pid: int) -> Iterator[int]:
    return (child for child, _ in command_lines() if parent_of(child) == pid)
