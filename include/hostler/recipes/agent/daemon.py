"""The daemon: one process a node. Ships, watches for an interruption notice, samples the load, holds the dead man's switch."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

from hostler.recipes.agent import expiry, jobs, load, processes, shipping
from hostler.recipes.agent.keeping import better_python, marked_environment
from hostler.recipes.agent.layout import NodeHome, locked, read_json, stamp, write_json
from hostler.recipes.agent.metadata import Metadata, MetadataError

_TICK_S = 1.0
_SHIP_S = 1.0
_NOTICE_S = 2.0
_NO_SERVICE_S = 30.0
_LAST_CHECKPOINT_S = 60.0
_LAST_SHIPPING_S = 300.0
_SHUTDOWN_AGAIN_S = 30.0


class Daemon:
    """All threads of the daemon. ``run`` returns when it is told to end or when the agent's folder is gone."""

    def __init__(self, home: NodeHome) -> None:
        self._home = home
        self._ended = threading.Event()
        self._hurry = threading.Event()

    def run(self) -> None:
        """Works until the end."""
        signal.signal(signal.SIGTERM, lambda *_: self._ended.set())
        for work in (self._ship_on, self._watch_notice, self._sample_on):
            threading.Thread(target=work, daemon=True).start()
        while not self._ended.wait(_TICK_S) and self._home.agent.is_dir():
            if expiry.is_due(self._home, is_working=bool(jobs.working(self._home, silent_s=expiry.SILENT_S))):
                self._expire()

    def _ship_on(self) -> None:
        while not self._ended.is_set():
            if self._home.agent.is_dir() and self._home.node().get("backup"):
                error = shipping.ship(self._home)["error"]
                if error and "cryptography" in error:
                    self._change_python()
            self._hurry.wait(_SHIP_S)
            self._hurry.clear()

    def _sample_on(self) -> None:
        sampler = load.Sampler(self._home)
        while self._home.agent.is_dir():
            # Whatever goes wrong with one sample leaves a gap, and a gap is never idle.
            with contextlib.suppress(Exception):
                sampler.record()
            if self._ended.wait(load.SAMPLE_S):
                return

    def _change_python(self) -> None:
        """The setup has made an environment with the package since we started: go on in that one."""
        better = better_python(self._home)
        if better:
            os.execve(better, [better, sys.argv[0], "daemon"], marked_environment())  # noqa: S606 - the interpreter on purpose

    def _watch_notice(self) -> None:
        metadata, wait_s = Metadata(), _NOTICE_S
        while not self._ended.wait(wait_s):
            try:
                found = metadata.notice()
                wait_s = _NOTICE_S
            except MetadataError:
                wait_s = _NO_SERVICE_S
                continue
            known = read_json(self._home.notice_file)
            if found and (known or {}).get("notice") != found and self._home.agent.is_dir():
                words = "the cloud takes this node: {} at {}".format(found["action"], found["time"])
                write_json(self._home.notice_file, {"notice": found, "words": words, "seen": stamp()})
                self._ask_all()

    def _ask_all(self) -> None:
        for folder in jobs.working(self._home, silent_s=expiry.SILENT_S):
            jobs.request_checkpoint(folder)
        self._hurry.set()

    def _expire(self) -> None:
        """Saves what can be saved, within bounds, then powers off; again and again until the power is gone."""
        working = jobs.working(self._home, silent_s=expiry.SILENT_S)
        before = {folder.job_id: folder.steps()[:1] for folder in working}
        self._ask_all()
        deadline = time.monotonic() + (_LAST_CHECKPOINT_S if working else 0)
        while time.monotonic() < deadline and any(folder.steps()[:1] == before[folder.job_id] for folder in working):
            if not jobs.working(self._home, silent_s=expiry.SILENT_S):
                break
            time.sleep(0.2)
        last = threading.Thread(target=shipping.flush, args=(self._home,), daemon=True)
        last.start()
        last.join(_LAST_SHIPPING_S)
        error = expiry.power_off()
        write_json(self._home.agent / "expired.json", {"at": stamp(), "error": error})
        self._ended.wait(_SHUTDOWN_AGAIN_S)


def main(home: NodeHome) -> None:
    """Entry of the daemon's process; ends at once when another one has the lock."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with locked(home.daemon_lock, wait=False) as is_mine:
        if is_mine:
            write_json(home.daemon_file, dict(processes.identity(os.getpid()), program=Path(sys.argv[0]).name))
            Daemon(home).run()
