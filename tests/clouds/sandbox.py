"""The sandbox as a process of its own, and a client of its control API."""

import json
import os
import subprocess
import sys
import time
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

START_S: Final = 90.0
STOP_S: Final = 20.0


class SandboxProcess:
    """A sandbox, without nodes unless asked for. ``info``: what it wrote when it was ready."""

    def __init__(self, folder: Path, *options: str, has_nodes: bool = False) -> None:
        path = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *sys.path]
        nodes = () if has_nodes else ("--no-nodes",)
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hostler_sandbox", "--state-dir", str(folder), "--die-with-parent", *options, *nodes],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self.info = self._wait_for(folder)

    def _wait_for(self, folder: Path) -> dict[str, Any]:
        ready = folder / "sandbox.json"
        ends_s = time.monotonic() + START_S
        while time.monotonic() < ends_s and self._process.poll() is None:
            if ready.exists():
                info: dict[str, Any] = json.loads(ready.read_text())
                return info
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the sandbox did not start: {(folder / 'log').read_text()[-2000:]}")

    @property
    def aws_url(self) -> str:
        return str(self.info["aws_endpoint"])

    def post(self, name: str, **body: Any) -> dict[str, Any]:
        return self._ask("POST", f"/_sandbox/{name}", json.dumps(body))

    def get(self, name: str, **query: str) -> dict[str, Any]:
        return self._ask("GET", f"/_sandbox/{name}?{urlencode(query)}", None)

    def _ask(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        line = HTTPConnection(urlsplit(self.info["control_url"]).netloc, timeout=30)
        try:
            line.request(method, path, body, {"Content-Type": "application/json"})
            answer = line.getresponse()
            text = answer.read()
        finally:
            line.close()
        if answer.status != HTTPStatus.OK:
            raise RuntimeError(f"{method} {path} {body}: {answer.status} {text[:500]!r}")
        reply: dict[str, Any] = json.loads(text)
        return reply

    def states(self) -> dict[str, str]:
        """Returns the state of every machine, by id."""
        return {machine["machine_id"]: machine["state"] for machine in self.get("machines")["machines"]}

    def settle(self) -> None:
        """Lets a minute pass, until no machine is on its way from one state to another."""
        self.post("clock", advance_s=60)
        ends_s = time.monotonic() + 30
        while set(self.states().values()) & {"pending", "shutting-down", "stopping"}:
            if time.monotonic() > ends_s:
                raise TimeoutError(f"machines do not settle: {self.states()}")
            self.post("clock", advance_s=1)
            time.sleep(0.02)

    def reset(self) -> None:
        """Ends all machines; faults, stock, quotas and prices are forgotten."""
        self.post("reset")
        self.settle()

    def stop(self) -> int:
        """Ends it as a supervisor would; returns its exit status."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        return self._process.returncode
