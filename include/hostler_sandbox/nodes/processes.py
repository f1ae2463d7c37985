"""Finds, stops and ends every process of a node, also daemons that left their session and cleared their environment.

A process belongs to a node when its environment or working directory lies in the node's root folder, when it carries the
node's resource limit mark, or when its parent, session or process group does. The mark is a pair of values of the limit on
POSIX message queues (RLIMIT_MSGQUEUE), which nothing uses, every child inherits and no unprivileged process can raise again.
"""

import contextlib
import os
import resource
import secrets
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MOST: Final = 819_200
"""Linux' default limit in bytes; marks lie below it, and below the present limit if that is lower."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells a node's processes from others: its root folder and its pair of (soft, hard) limits in bytes."""

    root: Path
    limits: tuple[int, int]


def new_limits() -> tuple[int, int]:
    """Returns a pair that no other node has (1 in 10^11 by chance)."""
    _, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    high = most - secrets.randbelow(max(1, most // 2))
    return secrets.randbelow(max(1, high)), high


def shell_prefix(limits: tuple[int, int]) -> str:
    """Returns bash text that puts the mark on the shell and all it starts."""
    return f"ulimit -Sq {limits[0]}; ulimit -Hq {limits[1]}; "


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


def _is_marked(pid: int, roots: Collection[bytes], limits: Collection[tuple[bytes, bytes]]) -> bool:
    with contextlib.suppress(OSError):
        environment = Path(f"/proc/{pid}/environ").read_bytes().replace(b"\0", b"/\0") + b"/"
        if any(root in environment for root in roots):
            return True
    with contextlib.suppress(OSError):
        folder = os.fsencode(Path(f"/proc/{pid}/cwd").readlink()) + b"/"
        if any(folder.startswith(root) for root in roots):
            return True
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/limits").read_bytes().splitlines():
            if line.startswith(b"Max msgqueue size"):
                words = line.split()
                return (words[3], words[4]) in limits
    return False


def processes_of(marks: Collection[Mark]) -> set[int]:
    """Returns the ids of all living processes of these nodes.

    Zombies are left out: they are dead and hold nothing. The caller's own process is never among them.
    """
    roots = {os.fsencode(os.path.realpath(mark.root)) + b"/" for mark in marks}
    limits = {(b"%d" % mark.limits[0], b"%d" % mark.limits[1]) for mark in marks}
    table = [found for path in Path("/proc").iterdir() if path.name.isdigit() and (found := _read(int(path.name)))]
    living = {one.pid: one for one in table if one.state not in "ZX" and one.pid != os.getpid()}
    mine = {pid for pid in living if _is_marked(pid, roots, limits)}
    grown = bool(mine)
    while grown:
        more = {pid for pid, one in living.items() if pid not in mine and {one.ppid, one.session, one.group} & mine}
        mine |= more
        grown = bool(more)
    return mine


def send(pids: Collection[int], number: signal.Signals) -> None:
    """Sends a signal to each process that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def pause(marks: Collection[Mark]) -> set[int]:
    """Stops all processes of the nodes and returns their ids; looks again until no unseen one is left, since they may fork."""
    seen: set[int] = set()
    while more := processes_of(marks) - seen:
        send(more, signal.SIGSTOP)
        seen |= more
    return seen


def resume(marks: Collection[Mark]) -> None:
    """Lets all stopped processes of the nodes go on."""
    send(processes_of(marks), signal.SIGCONT)


def end_all(marks: Collection[Mark], *, deadline_s: float = 5.0) -> None:
    """Ends every process of the nodes as a power cut would: no handler runs, none is left.

    Raises:
        TimeoutError: a process outlived SIGKILL (it sits in the kernel); the message lists the ids.
    """
    end = time.monotonic() + deadline_s
    while left := pause(marks):
        send(left, signal.SIGKILL)
        _wait_gone(left, end)
        if time.monotonic() > end:
            raise TimeoutError(f"processes left: {sorted(left)}")


def _wait_gone(pids: Collection[int], end: float) -> None:
    while time.monotonic() < end and any((one := _read(pid)) and one.state not in "ZX" for pid in pids):
        time.sleep(0.002)
