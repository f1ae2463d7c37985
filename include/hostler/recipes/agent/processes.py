"""Processes: who is who (ids are reused), which belong to a job, and signals to them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any, Callable, Iterable

from hostler.recipes.agent.layout import boot_id

_START_FIELD = 19  # of /proc/PID/stat after the name: start time. Source: proc(5), field 22
_GROUP_FIELD, _SESSION_FIELD = 2, 3


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def identity(pid: int) -> dict[str, Any]:
    """Returns what tells this process from a later one with the same id."""
    fields = _stat(pid)
    return {"pid": pid, "start": fields[_START_FIELD] if fields else None, "boot_id": boot_id()}


def is_alive(who: dict[str, Any] | None) -> bool:
    """True when the very process lives (a zombie does not)."""
    if not who or not isinstance(who.get("pid"), int) or who.get("boot_id") != boot_id():
        return False
    fields = _stat(who["pid"])
    return bool(fields) and fields is not None and fields[0] not in "ZX" and fields[_START_FIELD] == who.get("start")


def members(group: int | None, marker: str) -> set[int]:
    """Returns the living processes of a job: its group, its session, and all that carry its marker in their environment.

    Launchers such as torchrun put their workers into sessions of their own; the marker finds those.

    Args:
        group: process group of the job; None when it is not known (or its id may be another's by now).
        marker: an environment entry, ``NAME=value``, that only this job's processes have.
    """
    wanted = b"\0" + os.fsencode(marker) + b"\0"
    found = set()
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are all that is needed
        if not name.isdigit() or int(name) == os.getpid():
            continue
        fields = _stat(int(name))
        if not fields or fields[0] in "ZX":
            continue
        own = group is not None and str(group) in {fields[_GROUP_FIELD], fields[_SESSION_FIELD]}
        if own or _is_marked(int(name), wanted):
            found.add(int(name))
    return found


def _is_marked(pid: int, wanted: bytes) -> bool:
    try:
        return wanted in b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
    except OSError:
        return False


def catches(pid: int, number: int) -> bool:
    """True when the process has a handler for the signal. Source: proc(5), SigCgt."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def send(pids: Iterable[int], number: int) -> None:
    """Sends a signal to each process that still exists."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def end(find: Callable[[], set[int]], *, grace_s: float, tick: Callable[[], object] = lambda: None) -> bool:
    """Ends processes: asks, waits, then kills, looking again for those born meanwhile. Returns whether all are gone."""
    if grace_s > 0:
        send(find(), signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while find() and time.monotonic() < deadline:
            tick()
            time.sleep(0.1)
    for _ in range(50):
        left = find()
        if not left:
            return True
        send(left, signal.SIGKILL)
        tick()
        time.sleep(0.1)
    return False
