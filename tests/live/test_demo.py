"""The demo itself, as a person runs it: all of it, kept up, and broken off. Played by `make live` only: each takes minutes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live"), pytest.mark.sandbox, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def not_in_the_core(pytestconfig):
    if pytestconfig.getoption("live") == "core":
        pytest.skip("the demo is played by `make live` only")


@pytest.fixture
def demo(tmp_path):
    """A started demo with its words in ``words()``."""
    tmp_path.chmod(0o711)
    started = []

    def start(**env: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "hostler_sandbox.demo"]
        with (tmp_path / "words").open("wb") as log:
            process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **env}, stdout=log, stderr=subprocess.STDOUT)
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.wait(120)


def words(folder: Path) -> str:
    return (folder / "words").read_text(errors="replace")


def left_over(folder: Path) -> list[str]:
    """Command lines of live processes that name the demo's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            place = str((entry / "cwd").readlink()) if entry.name.isdigit() else ""
        except OSError:
            continue
        if str(folder / ".demo").encode() in line or place.startswith(str(folder / ".demo")):
            found.append(line.decode(errors="replace"))
    return found


def wait_for_words(process: subprocess.Popen[bytes], folder: Path, text: str) -> None:
    end = time.monotonic() + 600
    while text not in words(folder):
        assert process.poll() is None, words(folder)
        assert time.monotonic() < end, words(folder)
        time.sleep(0.2)


def test_demo_when_left_alone_then_loses_a_node_and_all_is_right_all_the_same_and_kept_up_until_ctrl_c(demo, tmp_path):
    process = demo(SEED="11", KEEP="1")
    wait_for_words(process, tmp_path, "KEEP=1: Airflow stays at")
    report = json.loads((tmp_path / ".demo" / "report.json").read_text())
    url = words(tmp_path).split("KEEP=1: Airflow stays at ")[1].split()[0]
    with pytest.raises(HTTPError) as refused:
        urlopen(f"{url}/api/v2/dags", timeout=30)
    assert refused.value.code == 401, "it is up, and asks who is there"
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    assert left_over(tmp_path) == []
    assert "WRONG" not in words(tmp_path)
    assert report["accuracy"] >= 0.95
    assert report["weights_sha256"] == report["undisturbed_weights_sha256"]
    assert (report["nodes_lost"], report["nodes_launched"], report["live_nodes"]) == (1, 3, 0)
    assert report["resumed_steps"] > 0
    assert report["redone_steps"] <= report["checkpoint_interval_steps"]
    assert report["backup_verified"]
    assert report["receipt_complete"]


@pytest.mark.parametrize("moment", ["starting Airflow", "triggered", "setup: running"])
def test_demo_when_broken_off_then_nothing_is_left(demo, tmp_path, moment):
    process = demo(SEED="12")
    wait_for_words(process, tmp_path, moment)
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    assert "all processes and nodes are ended" in words(tmp_path)
    assert left_over(tmp_path) == []
