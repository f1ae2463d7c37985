"""Shows that training goes on from a restored checkpoint: some steps of the run's own recipe, in processes here."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any, Final

from hostler.model.lease import Lease
from hostler.recipes.files import package_files
from hostler.recipes.workloads import RECIPES

_NEEDS: Final = {"digits": ("numpy", "sklearn"), "torch-ddp": ("torch", "numpy", "sklearn")}
_POLL_S: Final = 0.05
"""Between two looks at the processes; the wait as a whole is bounded by the caller's time-out."""


class ResumeError(Exception):
    """Training did not go on from the checkpoint; the text has its last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """What was shown. ``began_s``: seconds until the first step beyond the checkpoint was done."""

    from_step: int
    to_step: int
    began_s: float


def why_not_here(lease: Lease) -> str | None:
    """Returns why a lease's training can't be run on this machine; None when it can."""
    recipe = lease.request.recipe
    if recipe not in RECIPES:
        return f"recipe {recipe!r} runs a tenant's own program, which is for nodes only"
    if recipe == "torch-ddp" and lease.request.node_count > 1:
        return "torch-ddp over several nodes needs several machines"
    missing = [name for name in _NEEDS.get(recipe, ()) if util.find_spec(name) is None]
    return f"{', '.join(missing)} not installed here" if missing else None


def resume_training(
    lease: Lease, checkpoints: Path, step: int, folder: Path, *, more_steps: int = 3, timeout_s: float = 300
) -> Resumed:
    """Runs the lease's recipe from a checkpoint until it has made ``more_steps`` steps beyond it.

    Args:
        checkpoints: holds ``step-<n>``, restored; it is copied, never written to. folder: an empty folder to work in.

    Raises:
        ResumeError: it did not go on, or not from this step.
    """
    world_size = lease.request.node_count
    gang = _Gang(lease, folder, step, step + more_steps)
    try:
        for rank in range(world_size):
            shutil.copytree(checkpoints / f"step-{step}", gang.place(rank) / "checkpoints" / f"step-{step}")
            gang.start(rank, world_size)
        return gang.watch(timeout_s)
    finally:
        gang.end()


class _Gang:
    """The processes of all ranks."""

    def __init__(self, lease: Lease, folder: Path, step: int, last_step: int) -> None:
        self._lease = lease
        self._folder = folder
        self._step = step
        self._last_step = last_step
        self._port = _free_port()
        self._job_id = f"drill-{secrets.token_hex(4)}"
        self._began = time.monotonic()
        self._processes: list[subprocess.Popen[bytes]] = []

    def place(self, rank: int) -> Path:
        """Returns a rank's folder."""
        return self._folder / f"rank-{rank}"

    def start(self, rank: int, world_size: int) -> None:
        """Starts one rank as a node would: the recipe's own command, its files, the user-code contract."""
        place = self.place(rank)
        recipe = RECIPES[self._lease.request.recipe]
        for package, name in recipe.packages:
            for path, content in package_files(package, name).items():
                (place / "code" / path).parent.mkdir(parents=True, exist_ok=True)
                (place / "code" / path).write_bytes(content)
        (place / "output").mkdir()
        _interpreter(place / "home" / "venv" / "bin" / "python")
        with (place / "log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    ["sh", "-c", recipe.command(self._lease.request)],
                    env=self._environment(rank, world_size),
                    cwd=place,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _environment(self, rank: int, world_size: int) -> dict[str, str]:
        place, options = self.place(rank), dict(self._lease.request.recipe_options)
        # As many processes as this machine can give; the network is the same.
        options |= {"steps": str(self._last_step), "step_delay_s": "0"}
        if self._lease.request.recipe == "torch-ddp":
            options["processes_per_node"] = "1"
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(place),
            "HOSTLER_HOME": str(place / "home"),
            "HOSTLER_CODE_DIR": str(place / "code"),
            "HOSTLER_CHECKPOINT_DIR": str(place / "checkpoints"),
            "HOSTLER_OUTPUT_DIR": str(place / "output"),
            "HOSTLER_METRICS_FILE": str(place / "metrics.jsonl"),
            "HOSTLER_JOB_ID": self._job_id,
            "HOSTLER_LEASE_ID": self._lease.lease_id,
            "HOSTLER_CHECKPOINT_INTERVAL_STEPS": "1000000000",
            "RANK": str(rank),
            "NODE_RANK": str(rank),
            "WORLD_SIZE": str(world_size),
            "NNODES": str(world_size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self._port),
            **{f"HOSTLER_OPTION_{name.upper()}": text for name, text in options.items()},
        }

    def watch(self, timeout_s: float) -> Resumed:
        """Waits for the first step beyond the checkpoint, and for the last one. Raises ResumeError."""
        began_s: float | None = None
        deadline = self._began + timeout_s
        while time.monotonic() < deadline:
            rows = self._metrics()
            if began_s is None and any(row.get("step", 0) > self._step for row in rows):
                began_s = time.monotonic() - self._began
            if all(process.poll() is not None for process in self._processes):
                return self._judge(self._metrics(), began_s)
            if any(process.poll() not in {None, 0} for process in self._processes):
                raise ResumeError(f"training from step {self._step} ended: {self._last_words()}")
            time.sleep(_POLL_S)
        raise ResumeError(f"training from step {self._step} did not make its steps within {timeout_s:.0f} s")

    def _judge(self, rows: list[dict[str, Any]], began_s: float | None) -> Resumed:
        if any(process.returncode for process in self._processes):
            raise ResumeError(f"training from step {self._step} ended: {self._last_words()}")
        from_step = next((row["resumed_from_step"] for row in rows if "resumed_from_step" in row), None)
        if from_step != self._step:
            raise ResumeError(f"training began at step {from_step or 0} instead of {self._step}: {self._last_words()}")
        steps = [step for row in rows if isinstance(step := row.get("step"), int)]
        to_step = max(steps, default=0)
        if to_step < self._last_step:
            raise ResumeError(f"training from step {self._step} ended at step {to_step}: {self._last_words()}")
        return Resumed(from_step=self._step, to_step=to_step, began_s=began_s or time.monotonic() - self._began)

    def _metrics(self) -> list[dict[str, Any]]:
        try:
            lines = (self.place(0) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            return [row for line in lines if isinstance(row := json.loads(line), dict)]
        except (OSError, ValueError):  # none yet, or one is being written
            return []

    def _last_words(self) -> str:
        logs = [self.place(rank) / "log" for rank in range(len(self._processes))]
        return " | ".join(path.read_bytes()[-300:].decode(errors="replace").strip() for path in logs if path.exists())[-600:]

    def end(self) -> None:
        """Ends every process with its children."""
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _interpreter(path: Path) -> None:
    """Puts our interpreter where a recipe's command looks for the node's; a link would lose its packages."""
    path.parent.mkdir(parents=True)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    path.chmod(0o700)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
