"""A node's agent as real processes in a folder of its own, with a false ``shutdown`` that only takes notes."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostler.recipes.agent.build import agent_name, build_agent

LEASE = "lease1"
DATA_KEY = bytes(range(32))
DEAD_ENDPOINT = "http://127.0.0.1:9"
SHUTDOWN = '#!/bin/sh\necho "$@" >>"$HOSTLER_HOME/shutdown.calls"\n'


def until(is_so: Callable[[], Any], deadline_s: float = 30) -> Any:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        found = is_so()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come about in time")


class AgentBench:
    def __init__(self, folder: Path, node_name: str = "node-0", *, python: str = sys.executable) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.store = folder.parent / "store"
        self.node_name = node_name
        self.python = python
        tools = folder / "tools"
        tools.mkdir(parents=True)
        for name in ("shutdown", "sudo"):
            (tools / name).write_text(SHUTDOWN)
            (tools / name).chmod(0o755)
        self.program = folder / agent_name()
        self.program.write_bytes(build_agent())
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOSTLER_HOME": str(self.home),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": DEAD_ENDPOINT,
        }

    def raw(self, command: str, *words: str, order: Any = None, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        given = "" if order is None else json.dumps(order)
        argv = [self.python, str(self.program), command, *words]
        return subprocess.run(
            argv, input=given, env=self.environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def ask(self, command: str, **order: Any) -> Any:
        done = self.raw(command, order=order)
        document = json.loads(done.stdout)
        assert document["ok"], document
        return document["result"]

    def refused(self, command: str, **order: Any) -> str:
        done = self.raw(command, order=order)
        document = json.loads(done.stdout)
        assert (done.returncode, document["ok"]) == (1, False)
        return f"{document['kind']}: {document['error']}"

    def backup(self, **more: Any) -> dict[str, Any]:
        uri = f"file://{self.store}"
        return {"uri": uri, "key_id": "k1", "data_key": base64.b64encode(DATA_KEY).decode(), **more}

    def configure(self, **more: Any) -> Any:
        return self.ask("configure", lease_id=LEASE, node_name=self.node_name, **more)

    def start(self, job_id: str, script: str, **more: Any) -> Any:
        order = {"job_id": job_id, "lease_id": LEASE, "attempt_token": "t1", "argv": ["sh", "-c", script], **more}
        return self.ask("start", **order)

    def start_python(self, job_id: str, program: str, **more: Any) -> Any:
        files = {"train.py": base64.b64encode(program.encode()).decode(), **more.pop("files", {})}
        return self.start(job_id, f"exec {sys.executable} -u train.py", files=files, **more)

    def status(self, job_id: str) -> Any:
        return self.ask("status", job_id=job_id)

    def until_state(self, job_id: str, *states: str) -> Any:
        until(lambda: self.written(job_id, "state").get("state") in states)
        return self.status(job_id)

    def written(self, job_id: str, name: str) -> dict[str, Any]:
        """One of the job's files, read without asking the agent, which costs a process each time."""
        path = self.job(job_id) / f"{name}.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def shipped(self) -> list[dict[str, Any]]:
        path = self.home / "agent" / f"index-{LEASE}.json"
        return list(json.loads(path.read_text())["objects"]) if path.exists() else []

    def shipped_steps(self) -> list[int]:
        return sorted(entry["step"] for entry in self.shipped() if entry["kind"] == "checkpoint")

    def job(self, job_id: str) -> Path:
        return self.home / "jobs" / job_id

    def supervisor(self, job_id: str) -> int:
        return int(json.loads((self.job(job_id) / "supervisor.json").read_text())["pid"])

    def daemon(self) -> int:
        return int(json.loads((self.home / "agent" / "daemon.json").read_text())["pid"])

    def processes(self) -> set[int]:
        """All living processes that belong to this node."""
        wanted = f"HOSTLER_HOME={self.home}".encode()
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        found.add(int(entry.name))
                except OSError:
                    continue
        return found

    def shutdowns(self) -> list[str]:
        path = self.home / "shutdown.calls"
        return path.read_text().splitlines() if path.exists() else []

    def close(self) -> None:
        for _ in range(20):
            left = self.processes()
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)
        raise AssertionError(f"processes left: {self.processes()}")


TRAIN = """
import json, os, signal, sys, time
state = {"asked": False, "ended": False}
signal.signal(signal.SIGUSR1, lambda *_: state.update(asked=True))
signal.signal(signal.SIGTERM, lambda *_: state.update(ended=True))
root = os.environ["HOSTLER_CHECKPOINT_DIR"]
steps = [int(n[5:]) for n in os.listdir(root) if n.startswith("step-")]
step = resumed = max(steps, default=0)
def save():
    name = os.path.join(root, "step-%d" % step)
    if os.path.exists(name): return
    os.mkdir(name + ".tmp")
    with open(os.path.join(name + ".tmp", "weights-%s" % os.environ["RANK"]), "w") as f: f.write("w%d" % step)
    os.rename(name + ".tmp", name)
print("begins at", resumed)
every, last = int(os.environ.get("EVERY", "1000000")), int(os.environ.get("LAST", "1000000"))
while step < last and not state["ended"]:
    step += 1
    with open(os.environ["HOSTLER_METRICS_FILE"], "a") as f:
        f.write(json.dumps({"step": step, "loss": 1.0 / step, "resumed_from_step": resumed}) + "\\n")
    if step % every == 0 or state["asked"]:
        state["asked"] = False
        save()
    time.sleep(0.02)
print("ends at", step)
"""
