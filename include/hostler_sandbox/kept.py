"""The owner's side of a keeper: starts it, reads who runs, stops it and proves that nothing is left."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hostler_sandbox.keeper import MARK, KeeperSpec
from hostler_sandbox.processes import is_alive, kill_all, marked


class KeptProcessesError(RuntimeError):
    """The keeper died, or something outlived it; the text names pids and logs."""


class Kept:
    """A running keeper. When this process dies, however it does, the keeper ends everything."""

    def __init__(self, spec: KeeperSpec, folder: Path) -> None:
        self._spec = spec
        self._status = Path(spec.status)
        spec_file = folder / "keeper.json"
        spec_file.touch(mode=0o600)
        spec_file.write_text(spec.dump())
        self._log = folder / "keeper.log"
        with self._log.open("ab") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-m", "hostler_sandbox.keeper", str(spec_file)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def pids(self) -> dict[str, int]:
        """Returns the pid of each process that the keeper says it runs and that is alive now.

        Raises:
            KeptProcessesError: the keeper has ended.
        """
        if self._keeper.poll() is not None:
            raise KeptProcessesError(f"the keeper ended with status {self._keeper.returncode}; see {self._log}")
        named: dict[str, int] = self._read().get("pids", {})
        return {name: pid for name, pid in named.items() if is_alive(pid)}

    def restarts(self) -> dict[str, int]:
        """Returns how often each process was started again; those never restarted are not named."""
        counts: dict[str, int] = self._read().get("restarts", {})
        return counts

    def everyone(self) -> tuple[int, ...]:
        """Returns the pids of all live processes that carry the keeper's mark."""
        return marked(MARK, self._spec.mark)

    def stop(self) -> None:
        """Ends everything and looks that it is so. Safe to call twice.

        Raises:
            KeptProcessesError: something survived SIGKILL for 10 s.
        """
        if self._keeper.stdin is not None:
            with contextlib.suppress(OSError):
                self._keeper.stdin.close()
        try:
            self._keeper.wait(timeout=self._spec.term_s + 10)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        end = time.monotonic() + 10
        while left := self.everyone():
            if time.monotonic() > end:
                raise KeptProcessesError(f"still alive: {left}; see {self._log}")
            kill_all(left)
            time.sleep(0.05)

    def _read(self) -> dict[str, Any]:
        try:
            status: dict[str, Any] = json.loads(self._status.read_text())
        except FileNotFoundError:
            return {}
        return status
