"""The sandbox's own process: who owns what it starts, and when it must end. Linux only; elsewhere these do nothing."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
"""Source: prctl(2)."""


def become_subreaper() -> bool:
    """Makes orphans of our children our own children, so that they can be ended; False where the system has no such thing."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> bool:
    """Asks for SIGTERM when the parent dies; False where the system has no such thing. A parent that is dead already counts."""
    parent = os.getppid()
    if not _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM):
        return False
    if os.getppid() != parent or parent == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    return True


def end_children(*, grace_s: float = 1.0) -> int:
    """Ends every process below us that is still there; returns how many were met. For the very end of the process only."""
    met = 0
    for step, number in enumerate((signal.SIGTERM, signal.SIGKILL)):
        children = _descendants()
        met = max(met, len(children))
        for pid in children:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        _reap(grace_s if step == 0 and children else 0.2)
    return met


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(option, value, 0, 0, 0) == 0)


def _descendants() -> list[int]:
    """Returns our children and theirs, youngest last."""
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        pid = queue.pop()
        for child in _children(pid):
            found.append(child)
            queue.append(child)
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        for task in tasks:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:  # noqa: PTH123 - a kernel file
                children.extend(int(word) for word in file.read().split())
    except OSError:
        return children
    return children


def _reap(for_s: float) -> None:
    """Waits for ended children, at most that long."""
    import time

    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        try:
            pid, _status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.02)
