import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hostler.recipes.files import package_files

STEPS = 30
ADDRESS = "127.0.0.2"


def free_port():
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


class Rank:
    """One node's job, as the agent would start it."""

    def __init__(self, folder: Path, rank: int, world_size: int, port: int, **options: object) -> None:
        self.folder = folder / f"node{rank}"
        for path, content in package_files("hostler.recipes.training.digits", "digits").items():
            (self.folder / "code" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "code" / path).write_bytes(content)
        env = {
            "PATH": os.environ["PATH"],
            "RANK": str(rank),
            "WORLD_SIZE": str(world_size),
            "MASTER_ADDR": ADDRESS,
            "MASTER_PORT": str(port),
            "HOSTLER_JOB_ID": "job-1",
            "HOSTLER_CHECKPOINT_DIR": str(self.checkpoints),
            "HOSTLER_OUTPUT_DIR": str(self.folder / "output"),
            "HOSTLER_METRICS_FILE": str(self.folder / "metrics.jsonl"),
            "HOSTLER_CHECKPOINT_INTERVAL_STEPS": "10",
            **{f"HOSTLER_OPTION_{name.upper()}": str(value) for name, value in {"steps": STEPS, **options}.items()},
        }
        self.log = (self.folder / "log").open("w+")
        command = [sys.executable, "-m", "digits.train"]
        cwd = self.folder / "code"
        self.process = subprocess.Popen(command, cwd=cwd, env=env, stdout=self.log, stderr=subprocess.STDOUT)

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    def metrics(self) -> list[dict]:
        path = self.folder / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def step(self) -> int:
        return max((line["step"] for line in self.metrics()), default=-1)

    def wait_for_step(self, step: int) -> None:
        deadline = time.monotonic() + 60
        while self.step() < step:
            assert time.monotonic() < deadline, self.words()
            assert self.process.poll() is None, self.words()
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(timeout=60)

    def words(self) -> str:
        return Path(self.log.name).read_text()

    def steps_kept(self) -> list[int]:
        return sorted(int(path.name[5:]) for path in self.checkpoints.glob("step-*"))


@pytest.fixture
def start(tmp_path):
    ranks = []

    def start(run="run", world_size=2, **options):
        port = free_port()
        started = [Rank(tmp_path / run, rank, world_size, port, **options) for rank in range(world_size)]
        ranks.extend(started)
        return started

    yield start
    for rank in ranks:
        if rank.process.poll() is None:
            rank.process.kill()
            rank.process.wait()
        rank.log.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Hash of the weights of a gang of two that nobody disturbed."""
    port = free_port()
    ranks = [Rank(tmp_path_factory.mktemp("undisturbed"), rank, 2, port) for rank in range(2)]
    assert [rank.end() for rank in ranks] == [0, 0], ranks[0].words()
    (digest,) = {rank.metrics()[-1]["weights_sha256"] for rank in ranks}
    for rank in ranks:
        rank.log.close()
    return digest


def test_train_when_left_alone_then_both_nodes_report_the_same_good_network(start):
    ranks = start(steps=0)

    assert [rank.end() for rank in ranks] == [0, 0], ranks[0].words()
    first, second = (rank.metrics() for rank in ranks)
    assert first[-1] == second[-1]
    assert first[-1]["accuracy"] >= 0.95
    assert first[0] == {"resumed_from_step": 0, "step": 0, "steps_total": first[-1]["step"]}
    assert first[-2]["loss"] < first[1]["loss"] / 5
    total = first[-1]["step"]
    assert ranks[0].steps_kept() == [*range(10, total, 10), total]
    assert ranks[1].steps_kept() == []
    weights = np.load(ranks[0].folder / "output" / "weights.npy")
    assert weights.shape == (64 * 64 + 64 + 64 * 10 + 10,)


def test_train_when_one_node_is_killed_then_the_other_ends_with_words_and_a_resume_gives_the_same_weights(start, undisturbed):
    ranks = start(step_delay_s=0.05)
    ranks[1].wait_for_step(12)
    ranks[1].process.kill()

    assert ranks[0].end() == 1
    assert "rank 1 is gone" in ranks[0].words()

    again = start(step_delay_s=0)  # the killed node's disk has nothing: its peer hands the checkpoint over
    assert [rank.end() for rank in again] == [0, 0], again[0].words()
    resumed = [line["resumed_from_step"] for line in again[1].metrics() if "resumed_from_step" in line]
    assert resumed == [0, 10]
    assert {rank.metrics()[-1]["weights_sha256"] for rank in again} == {undisturbed}


def test_train_when_rank_0_is_killed_and_loses_its_disk_then_the_restored_checkpoint_of_the_other_is_used(start, undisturbed):
    ranks = start(step_delay_s=0.05)
    ranks[0].wait_for_step(22)
    ranks[0].process.kill()
    assert ranks[1].end() == 1
    assert "rank 0 is gone" in ranks[1].words()
    ranks[1].checkpoints.mkdir()
    (ranks[0].checkpoints / "step-20").rename(ranks[1].checkpoints / "step-20")
    for path in ranks[0].checkpoints.glob("step-*"):
        (path / "state.npy").write_bytes(b"torn")

    again = start()
    assert [rank.end() for rank in again] == [0, 0], again[0].words()
    assert [line["resumed_from_step"] for line in again[0].metrics() if "resumed_from_step" in line] == [0, 20]
    assert "step-10 is left out: damaged" in again[0].words()
    assert {rank.metrics()[-1]["weights_sha256"] for rank in again} == {undisturbed}


def test_train_when_sigusr1_comes_then_a_checkpoint_is_made_at_the_end_of_the_step_whichever_node_got_it(start, undisturbed):
    ranks = start(step_delay_s=0.05)
    ranks[1].wait_for_step(3)
    ranks[1].process.send_signal(signal.SIGUSR1)

    assert [rank.end() for rank in ranks] == [0, 0], ranks[0].words()
    (extra,) = set(ranks[0].steps_kept()) - {10, 20, 30}
    assert 4 <= extra < 10
    assert ranks[0].metrics()[-1]["weights_sha256"] == undisturbed


def test_train_when_sigterm_comes_then_all_stop_after_a_checkpoint_and_a_resume_gives_the_same_weights(start, undisturbed):
    ranks = start(step_delay_s=0.05)
    ranks[0].wait_for_step(4)
    ranks[0].process.send_signal(signal.SIGTERM)

    assert [rank.end() for rank in ranks] == [143, 143]
    (kept,) = ranks[0].steps_kept()
    assert kept == ranks[0].step()

    again = start()
    assert [rank.end() for rank in again] == [0, 0], again[0].words()
    assert {rank.metrics()[-1]["weights_sha256"] for rank in again} == {undisturbed}


def test_train_when_a_node_never_comes_then_the_other_gives_up_with_words(tmp_path):
    lonely = Rank(tmp_path, 0, 2, free_port(), join_s=1)
    try:
        assert lonely.end() == 1
        assert "ranks [1] did not join within 1 s" in lonely.words()
    finally:
        lonely.process.kill()
        lonely.log.close()


def test_train_when_a_peer_falls_silent_then_the_other_does_not_wait_for_ever(start):
    ranks = start(step_delay_s=0.05, answer_s=1)
    ranks[1].wait_for_step(2)
    ranks[1].process.send_signal(signal.SIGSTOP)

    assert ranks[0].end() == 1
    assert "rank 1 was silent for 1 s" in ranks[0].words()


def test_train_when_a_stranger_calls_first_then_it_is_turned_away_and_the_gang_still_meets(tmp_path):
    port = free_port()
    first = Rank(tmp_path, 0, 2, port, steps=2)
    deadline = time.monotonic() + 30
    stranger = None
    while stranger is None and time.monotonic() < deadline:
        try:
            stranger = socket.create_connection((ADDRESS, port), timeout=5)
        except OSError:
            time.sleep(0.05)
    assert stranger is not None
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    second = Rank(tmp_path, 1, 2, port, steps=2)
    try:
        assert [first.end(), second.end()] == [0, 0], first.words()
    finally:
        stranger.close()
        for rank in (first, second):
            rank.process.kill()
            rank.log.close()


def test_train_when_the_nodes_run_with_different_options_then_it_is_refused(tmp_path):
    port = free_port()
    ranks = [Rank(tmp_path, rank, 2, port, seed=rank) for rank in range(2)]
    try:
        assert [rank.end() for rank in ranks] == [1, 1]
        assert "rank 1 runs with" in ranks[0].words()
    finally:
        for rank in ranks:
            rank.log.close()


def test_train_when_alone_then_it_needs_no_network(start):
    (only,) = start(world_size=1)

    assert only.end() == 0, only.words()
    assert only.metrics()[-1]["step"] == STEPS


def test_train_when_an_option_is_no_number_then_it_ends_with_words(start):
    (only,) = start(world_size=1, learning_rate="fast")

    assert only.end() == 1
    assert "option learning_rate: 'fast' is not a number" in only.words()
