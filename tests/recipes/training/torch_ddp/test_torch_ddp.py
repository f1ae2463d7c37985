import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostler.recipes.files import package_files

PYTHON = os.environ.get("HOSTLER_TORCH_PYTHON", sys.executable)
"""An interpreter with torch and scikit-learn; by default the one of the tests."""


def has_torch():
    code = "import importlib.util as u, sys; sys.exit(not (u.find_spec('torch') and u.find_spec('sklearn')))"
    return subprocess.run([PYTHON, "-c", code], check=False).returncode == 0


pytestmark = pytest.mark.skipif(not has_torch(), reason="torch is not installed (extra `torch`; or set HOSTLER_TORCH_PYTHON)")

STEPS = 24


class NodeJob:
    def __init__(self, folder: Path, rank: int, port: int, **options: object) -> None:
        self.folder = folder / f"node{rank}"
        for path, content in package_files("hostler.recipes.training.torch_ddp", "torch_ddp").items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(content)
        env = {
            "PATH": os.environ["PATH"],
            "OMP_NUM_THREADS": "1",
            "HOSTLER_CHECKPOINT_DIR": str(self.folder / "checkpoints"),
            "HOSTLER_OUTPUT_DIR": str(self.folder / "output"),
            "HOSTLER_METRICS_FILE": str(self.folder / "metrics.jsonl"),
            "HOSTLER_CHECKPOINT_INTERVAL_STEPS": "8",
            "HOSTLER_OPTION_ANSWER_S": "30",
            "HOSTLER_OPTION_JOIN_S": "30",
            **{f"HOSTLER_OPTION_{name.upper()}": str(value) for name, value in {"steps": STEPS, **options}.items()},
        }
        launcher = [PYTHON, "-m", "torch.distributed.run", "--nnodes=2", f"--node-rank={rank}", "--nproc-per-node=1"]
        command = [*launcher, "--master-addr=127.0.0.1", f"--master-port={port}", "torch_ddp/train.py"]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def metrics(self) -> list[dict]:
        path = self.folder / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def words(self) -> str:
        return (self.folder / "log").read_text()

    def wait_for_step(self, step: int) -> None:
        deadline = time.monotonic() + 120
        while max((line["step"] for line in self.metrics()), default=-1) < step:
            assert time.monotonic() < deadline, self.words()
            assert self.process.poll() is None, self.words()
            time.sleep(0.05)

    def worker(self) -> int:
        """The training process below torchrun."""
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                if path.read_text().rpartition(")")[2].split()[1] == str(self.process.pid):
                    return int(path.parent.name)
            except OSError:
                continue
        raise AssertionError(self.words())

    def kill(self) -> None:
        for pid in (self.process.pid, *([self.worker()] if self.process.poll() is None else [])):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()


@pytest.fixture
def start(tmp_path):
    started = []

    def start(run="run", **options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        jobs = [NodeJob(tmp_path / run, rank, port, **options) for rank in range(2)]
        started.extend(jobs)
        return jobs

    yield start
    for job in started:
        if job.process.poll() is None:
            job.kill()


def test_train_when_killed_and_resumed_on_the_cpu_then_it_ends_where_an_undisturbed_run_ends(start):
    calm = start("calm")
    assert [job.process.wait(timeout=200) for job in calm] == [0, 0], calm[0].words()
    (digest,) = {job.metrics()[-1]["weights_sha256"] for job in calm}

    jobs = start("killed", step_delay_s=0.2)
    jobs[1].wait_for_step(10)
    os.kill(jobs[0].worker(), signal.SIGUSR1)
    jobs[1].wait_for_step(12)
    for job in jobs:
        job.kill()
    kept = sorted(int(path.name[5:]) for path in (jobs[0].folder / "checkpoints").glob("step-*"))
    assert len(kept) == 2
    assert kept[0] == 8
    assert 10 <= kept[1] < 16

    again = start("killed")
    assert [job.process.wait(timeout=200) for job in again] == [0, 0], again[0].words()
    assert [line["resumed_from_step"] for line in again[1].metrics() if "resumed_from_step" in line] == [0, kept[1]]
    assert {job.metrics()[-1]["weights_sha256"] for job in again} == {digest}
    assert "precision bf16" in again[0].words()


def test_train_when_left_alone_then_the_network_is_good(start):
    jobs = start(steps=0)

    assert [job.process.wait(timeout=250) for job in jobs] == [0, 0], jobs[0].words()
    assert jobs[0].metrics()[-1]["accuracy"] >= 0.95
