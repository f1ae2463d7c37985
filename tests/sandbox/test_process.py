"""The sandbox as a process of its own, with nodes: what it starts ends with it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from tests.clouds.sandbox import SandboxProcess

from hostler_sandbox.processes import is_alive

MARK = "86423.5"
USER_DATA = f"#cloud-config\nruncmd:\n  - [sh, -c, 'setsid sleep {MARK} &']\n"


def running(mark):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0") and is_alive(int(entry.name)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_until(check, words, for_s=30):
    end = time.monotonic() + for_s
    while not check():
        assert time.monotonic() < end, words
        time.sleep(0.05)


@pytest.fixture
def sandbox(tmp_path):
    process = SandboxProcess(tmp_path, "--pending-s", "0.1", "--shutting-down-s", "0.1", "--boot-s", "0", has_nodes=True)
    yield process
    process.stop()


def client_of(sandbox):
    return boto3.client(
        "ec2", region_name="us-east-1", endpoint_url=sandbox.info["aws_endpoint"], aws_access_key_id="AKIASIMULATED0000000",
        aws_secret_access_key="simulated", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def launch(sandbox, ec2):
    return ec2.run_instances(
        ImageId=sandbox.info["fixtures"]["images"]["us-east-1/gpu"], InstanceType="g6.xlarge", MinCount=1, MaxCount=1,
        UserData=USER_DATA, InstanceInitiatedShutdownBehavior="terminate",
    )["Instances"][0]["InstanceId"]  # fmt: skip


def test_sandbox_when_stopped_then_no_process_of_a_node_and_no_facts_are_left(sandbox, tmp_path):
    ec2 = client_of(sandbox)
    launch(sandbox, ec2)
    wait_until(lambda: running(MARK), "the node's process did not start")
    assert sandbox.stop() == 0
    assert running(MARK) == []
    assert not (tmp_path / "sandbox.json").exists()
    ec2.close()


def test_guest_when_it_powers_itself_off_then_the_instance_is_terminated_and_its_processes_gone(sandbox):
    ec2 = client_of(sandbox)
    one = launch(sandbox, ec2)
    wait_until(lambda: running(MARK), "the node's process did not start")
    sandbox.post("power-off", machine_id=one)

    def state():
        return ec2.describe_instances(InstanceIds=[one])["Reservations"][0]["Instances"][0]["State"]["Name"]

    wait_until(lambda: state() == "terminated", "it did not end")
    assert running(MARK) == []
    ec2.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prctl")
def test_sandbox_when_its_parent_is_killed_then_it_ends(tmp_path):
    inner = [sys.executable, "-m", "hostler_sandbox", "--state-dir", str(tmp_path), "--no-nodes", "--die-with-parent"]
    code = f"import subprocess, time\nprocess = subprocess.Popen({inner!r})\nprint(process.pid, flush=True)\ntime.sleep(600)\n"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        pid = int(parent.stdout.readline())
        wait_until((tmp_path / "sandbox.json").exists, "it did not start", 90)
        parent.send_signal(signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), "it outlived its parent")
    assert not (tmp_path / "sandbox.json").exists()
