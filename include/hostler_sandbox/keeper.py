"""Keeps a set of processes running, and leaves none behind.

``python -m hostler_sandbox.keeper SPEC`` reads a JSON file (see ``KeeperSpec``), starts each process in a process group of its
own, starts again what ends, and writes who runs to the status file. It stops when its standard input closes: so it stops when
its owner dies, whatever way. It is a subreaper: a descendant that loses its parent stays below it, and is ended with the rest.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from hostler_sandbox.processes import become_subreaper, descendants, die_with_parent, kill_all, marked

MARK: Final = "HOSTLER_KEEPER"
"""Environment variable that every process below a keeper carries."""

_TICK_S: Final = 0.2
_RESTART_PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """One process to keep. ``log``: file that its output is appended to."""

    name: str
    argv: tuple[str, ...]
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperSpec:
    """What a keeper works from.

    Attributes:
        mark: value of the environment variable ``HOSTLER_KEEPER``; unlike any other keeper's.
        status: file it writes ``{"keeper": pid, "pids": {name: pid}, "restarts": {name: count}}`` to.
        term_s: how long processes may take to end after SIGTERM, before SIGKILL.
    """

    mark: str
    status: str
    cwd: str
    processes: tuple[ProcessSpec, ...]
    env: dict[str, str] = field(default_factory=dict)
    term_s: float = 8.0

    def dump(self) -> str:
        """Returns the JSON form."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> "KeeperSpec":
        """Reads the JSON form."""
        raw = json.loads(text)
        processes = tuple(ProcessSpec(**{**item, "argv": tuple(item["argv"])}) for item in raw.pop("processes"))
        return cls(processes=processes, **raw)


class Keeper:
    """Runs the processes of one spec in this process's main thread."""

    def __init__(self, spec: KeeperSpec) -> None:
        self._spec = spec
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._restarts: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._written = ""

    def run(self) -> None:
        """Keeps all running until standard input closes or SIGTERM or SIGINT comes; then ends every descendant."""
        become_subreaper()
        asked_to_stop = False

        def on_signal(_number: int, _frame: object) -> None:
            nonlocal asked_to_stop
            asked_to_stop = True

        signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the owner closes our input in order
        try:
            while not asked_to_stop:
                self._start_missing()
                self._write_status()
                if _input_closed(_TICK_S):
                    break
        finally:
            self._stop()

    def _start_missing(self) -> None:
        for process in self._spec.processes:
            running = self._running.get(process.name)
            if running is not None and running.poll() is None:
                continue
            if running is not None:
                self._end_group(running)
                self._restarts[process.name] = self._restarts.get(process.name, 0) + 1
                self._not_before[process.name] = time.monotonic() + _RESTART_PAUSE_S
                del self._running[process.name]
            if time.monotonic() >= self._not_before.get(process.name, 0.0):
                self._running[process.name] = self._start(process)
        self._reap()

    def _start(self, process: ProcessSpec) -> subprocess.Popen[bytes]:
        env = {**os.environ, **self._spec.env, MARK: self._spec.mark}
        with Path(process.log).open("ab") as log:
            return subprocess.Popen(
                process.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._spec.cwd,
                env=env,
                process_group=0,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
            )

    def _end_group(self, process: subprocess.Popen[bytes]) -> None:
        """Kills what an ended process left in its group: a new scheduler must not meet the workers of the old one."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    def _reap(self) -> None:
        """Collects adopted children that have ended; our own are collected by ``poll``."""
        own = {process.pid for process in self._running.values()}
        for entry in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
            if int(entry) not in own:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(int(entry), os.WNOHANG)

    def _write_status(self) -> None:
        pids = {name: process.pid for name, process in self._running.items()}
        text = json.dumps({"keeper": os.getpid(), "pids": pids, "restarts": self._restarts})
        if text == self._written:
            return
        path = Path(self._spec.status)
        part = path.with_suffix(".part")
        part.write_text(text)
        part.replace(path)
        self._written = text

    def _stop(self) -> None:
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        end = time.monotonic() + self._spec.term_s
        while self._left() and time.monotonic() < end:
            self._reap_all()
            time.sleep(0.05)
        while left := self._left():
            kill_all(left)
            self._reap_all()
            time.sleep(0.05)
        Path(self._spec.status).unlink(missing_ok=True)

    def _left(self) -> tuple[int, ...]:
        me = os.getpid()
        return tuple({*descendants(me), *marked(MARK, self._spec.mark)} - {me})

    def _reap_all(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _input_closed(wait_s: float) -> bool:
    """Waits at most ``wait_s``; True when standard input is at its end."""
    ready, _, _ = select.select([0], [], [], wait_s)
    return bool(ready) and os.read(0, 4096) == b""


if __name__ == "__main__":
    Keeper(KeeperSpec.load(Path(sys.argv[1]).read_text())).run()
