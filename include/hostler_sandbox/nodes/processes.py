"""Finds, stops and ends every process of a node, also daemons that left their session and cleared their environment.

Every process that the sandbox starts on a node carries the node's mark: a pair of values of the limit on POSIX message queues
(RLIMIT_MSGQUEUE), which nothing uses, every child inherits and no unprivileged process can raise again. Children, session and
group of a marked process belong to the node too.
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


Mark = tuple[int, int]
"""A node's pair of (soft, hard) limits in bytes."""


def new_mark() -> Mark:
    """Returns a pair that no other node has (1 in 10^11 by chance)."""
    _, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    high = most - secrets.randbelow(max(1, most // 2))
    return secrets.randbelow(max(1, high)), high


def shell_prefix(mark: Mark) -> str:
    """Returns bash text that puts the mark on the shell and all it starts."""
    return f"ulimit -Sq {mark[0]}; ulimit -Hq {mark[1]}; "


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


def _mark_of(pid: int) -> tuple[bytes, bytes] | None:
    try:
        text = Path(f"/proc/{pid}/limits").read_bytes()
    except OSError:
        return None
    start = text.find(b"Max msgqueue size")
    words = text[start : text.find(b"\n", start)].split()
    return (words[3], words[4]) if start >= 0 else None


def processes_of(marks: Collection[Mark]) -> set[int]:
    """Returns the ids of all living processes of these nodes.

    Zombies are left out: they are dead and hold nothing. The caller's own process is never among them.
    """
    wanted = {(b"%d" % soft, b"%d" % hard) for soft, hard in marks}
    table = [found for name in os.listdir("/proc") if name.isdigit() and (found := _read(int(name)))]  # noqa: PTH208  # 5 x faster
    living = {one.pid: one for one in table if one.state not in "ZX" and one.pid != os.getpid()}
    mine = {pid for pid in living if _mark_of(pid) in wanted}
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
