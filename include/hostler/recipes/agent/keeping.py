"""Keeps the daemon running, in the right interpreter. Light to import: every command of the agent does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from hostler.recipes.agent import processes
from hostler.recipes.agent.layout import NodeHome, private_folder, read_json

_START_S = 10.0


def better_python(home: NodeHome) -> str | None:
    """Returns the interpreter of the environment that the setup made; None when there is none or we run in it already."""
    found = home.root / "venv" / "bin" / "python"
    is_ours = os.environ.get("HOSTLER_AGENT_PYTHON") == "1"
    return str(found) if found.exists() and not is_ours else None


def marked_environment() -> dict[str, str]:
    """Returns our environment with the mark that keeps us from changing the interpreter twice."""
    return dict(os.environ, HOSTLER_AGENT_PYTHON="1")


def ensure(home: NodeHome) -> None:
    """Starts the daemon unless it runs; one of another version of the agent is asked to end first."""
    private_folder(home.agent)
    known = read_json(home.daemon_file)
    if processes.is_alive(known) and known is not None:
        if known.get("program") == Path(sys.argv[0]).name:
            return
        quit_daemon(home)
    nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen([sys.executable, sys.argv[0], "daemon"], cwd="/", start_new_session=True, **nothing)  # type: ignore[call-overload]
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and child.poll() is None:
        if (read_json(home.daemon_file) or {}).get("pid") == child.pid:
            break
        time.sleep(0.02)
    child.returncode = 0  # it outlives us on purpose


def quit_daemon(home: NodeHome) -> bool:
    """Ends the daemon, if it runs; returns whether it is gone."""
    known = read_json(home.daemon_file)
    deadline = time.monotonic() + _START_S
    while processes.is_alive(known) and known is not None and time.monotonic() < deadline:
        processes.send([known["pid"]], signal.SIGTERM)
        time.sleep(0.1)
    return not processes.is_alive(known)
