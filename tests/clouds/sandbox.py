"""The sandbox's cloud in a process of its own, without nodes: moto's state belongs to a process, and others here use moto too."""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

START_S = 90.0


class SandboxProcess:
    """Starts at once; ``facts`` is what sandbox.json holds."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "hostler_sandbox", "--state-dir", str(folder), "--die-with-parent", *arguments]
        self._log = folder / "sandbox.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self.facts: dict[str, Any] = self._wait(folder / "sandbox.json")

    def _wait(self, path: Path) -> dict[str, Any]:
        end = time.monotonic() + START_S
        while not path.exists():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < end, self._log.read_text()
            time.sleep(0.05)
        return dict(json.loads(path.read_text()))

    def post(self, name: str, **body: Any) -> dict[str, Any]:
        return self._ask(name, json.dumps(body).encode())

    def get(self, name: str) -> dict[str, Any]:
        return self._ask(name, None)

    def _ask(self, name: str, body: bytes | None) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.facts['control_url']}/_sandbox/{name}", data=body)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return dict(json.load(answer))

    def settle(self, passed_s: float) -> None:
        """Lets sandbox time pass until no machine is on its way to another state."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            self.post("clock", advance_s=passed_s)
            states = {machine["state"] for machine in self.get("machines")["machines"]}
            if states <= {"running", "stopped", "terminated"}:
                return
            time.sleep(0.02)
        raise AssertionError(f"not settled: {states}")

    def stop(self) -> int:
        """Ends the process as a supervisor would; returns its exit status."""
        self._process.terminate()
        return self._process.wait(30)

    @property
    def pid(self) -> int:
        return self._process.pid
