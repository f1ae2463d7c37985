"""Facts about running processes on Linux, read from ``/proc``, and the two prctl calls that keep orphans away."""

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Source of both numbers: linux/prctl.h.


def become_subreaper() -> None:
    """Makes this process the new parent of every descendant whose parent dies. Raises OSError."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Asks the kernel to send this process a signal when the thread that started it ends. Best between fork and exec.

    Raises:
        OSError: the kernel cannot.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def is_alive(pid: int) -> bool:
    """True while the process runs; a zombie does not count."""
    fields = _stat(pid)
    return fields is not None and fields[0] != "Z"


def parent_of(pid: int) -> int | None:
    """Returns the parent's pid, or None when there is no such process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def descendants(root: int) -> tuple[int, ...]:
    """Returns the pids of all live processes below ``root``, parents before children."""
    children: dict[int, list[int]] = {}
    for pid in _all_pids():
        parent = parent_of(pid)
        if parent is not None and is_alive(pid):
            children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(0), [])
        found.extend(below)
        queue.extend(below)
    return tuple(found)


def marked(name: str, value: str) -> tuple[int, ...]:
    """Returns the pids of all live processes that were started with this environment variable.

    Descendants inherit it, so it finds those that left the tree, too. Processes of other users are not seen.
    """
    wanted = f"{name}={value}".encode()
    found = []
    for pid in _all_pids():
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in variables and is_alive(pid):
            found.append(pid)
    return tuple(found)


def kill_all(pids: tuple[int, ...]) -> None:
    """Sends SIGKILL to each; those already gone are passed over."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 - names are enough, and cheaper


def _stat(pid: int) -> list[str] | None:
    """Returns the fields of /proc/<pid>/stat from the state on; the command's name before it may hold spaces."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
