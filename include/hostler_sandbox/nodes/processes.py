"""Finds, stops and ends every process of a node, also daemons that left their session.

A process belongs to a node when its environment or working directory lies in the node's root folder, or when its parent,
session or process group does. So a job that cleared its environment and moved elsewhere is still found as long as it was not
also orphaned into a new session; the node's own shells set the marker for all that they start.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    state: str
    ppid: int
    group: int
    session: int


def _read(pid: int) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return _Process(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[3]))


def _is_marked(pid: int, root: bytes) -> bool:
    with contextlib.suppress(OSError):
        if root + b"/" in Path(f"/proc/{pid}/environ").read_bytes().replace(b"\0", b"/\0") + b"/":
            return True
    with contextlib.suppress(OSError):
        folder = os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
        return (folder + b"/").startswith(root + b"/")
    return False


def processes_of(root: Path) -> set[int]:
    """Returns the ids of all living processes of the node with this root folder (or of all nodes below a folder).

    Zombies are left out: they are dead and hold nothing. The caller's own process is never among them.
    """
    marker = os.fsencode(os.path.realpath(root))
    table = [found for name in os.listdir("/proc") if name.isdigit() and (found := _read(int(name)))]
    living = {one.pid: one for one in table if one.state not in "ZX" and one.pid != os.getpid()}
    mine = {pid for pid in living if _is_marked(pid, marker)}
    grown = True
    while grown:
        more = {pid for pid, one in living.items() if pid not in mine and {one.ppid, one.session, one.group} & mine}
        mine |= more
        grown = bool(more)
    return mine


def send(pids: set[int], number: signal.Signals) -> None:
    """Sends a signal to each process that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def pause(root: Path) -> set[int]:
    """Stops all processes of the node and returns their ids; looks again until no unseen one is left, since they may fork."""
    seen: set[int] = set()
    while more := processes_of(root) - seen:
        send(more, signal.SIGSTOP)
        seen |= more
    return seen


def resume(root: Path) -> None:
    """Lets all stopped processes of the node go on."""
    send(processes_of(root), signal.SIGCONT)


def end_all(root: Path, *, deadline_s: float = 5.0) -> None:
    """Ends every process of the node as a power cut would: no handler runs, none is left.

    Raises:
        TimeoutError: a process outlived SIGKILL (it sits in the kernel); the message lists the ids.
    """
    end = time.monotonic() + deadline_s
    while left := pause(root):
        send(left, signal.SIGKILL)
        _wait_gone(left, end)
        if time.monotonic() > end:
            raise TimeoutError(f"processes left: {sorted(left)}")


def _wait_gone(pids: set[int], end: float) -> None:
    while time.monotonic() < end and any((one := _read(pid)) and one.state not in "ZX" for pid in pids):
        time.sleep(0.002)
