"""Setup, probe and verdict together, on a simulated machine that is reached as a real one is."""

import json
import socket
import time
from datetime import UTC, datetime

import pytest

from hostler.health.first import judge
from hostler.health.verdict import judge as judge_over_time
from hostler.model.enums import Verdict
from hostler.recipes import probe_file, setup_files
from hostler_sandbox.nodes.runtime import SshNodes
from hostler_sandbox.nodes_port import NodeSpec

NODE = "i-00000001"
FAULTS = (
    ({"kind": "hot", "gpu": 1, "temperature_c": 99}, "thermal margin -12 C, slows down below -2 C"),
    ({"kind": "ecc", "gpu": 2}, "1 volatile uncorrectable ECC errors, limit 0"),
    ({"kind": "remap_pending", "gpu": 3}, "a row remap is pending"),
    ({"kind": "nvlink_down", "gpu": 4}, "17 of 18 NVLinks active"),
    ({"kind": "lost", "gpu": 5}, "accelerator 5"),
    ({"kind": "driver_mismatch"}, "driver and library differ"),
)
"""One after the other on the same node, each with a sign that the verdict must name."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with socket.socket() as probe:
        probe.bind(("127.1.9.9", 0))
        port = probe.getsockname()[1]
    runtime = SshNodes(tmp_path_factory.mktemp("sandbox"))
    runtime.start(lambda _node_id: None)
    spec = NodeSpec(
        node_id=NODE,
        hostname="ip-127-1-9-9",
        address="127.1.9.9",
        ssh_port=port,
        user_data="#cloud-config\n",
        instance_type="p5.48xlarge",
        accelerator_name="H100",
        accelerator_count=8,
        memory_mib=2097152,
        vcpu_count=192,
        region="us-east-1",
        zone="us-east-1a",
        lifecycle="spot",
        image_id="ami-0123456789abcdef0",
        identity={},
        credentials=None,
        tags={},
    )
    runtime.boot(spec)
    yield runtime
    runtime.close()


def put(nodes, folder, files):
    for name, content in files.items():
        path = nodes.root_of(NODE) / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return nodes.root_of(NODE) / folder


def run_setup(nodes, folder):
    """Starts the setup again until it does not end in a reboot, as the agent does."""
    deadline = time.monotonic() + 240
    while True:
        try:
            done = nodes.run(NODE, f"cd {folder} && python3 setup.py", timeout_s=240)
        except (OSError, KeyError):  # the machine is rebooting
            done = None
        if done and done.exit_code not in (75, -9, -15):
            return done
        assert time.monotonic() < deadline
        time.sleep(0.5)


def asked(nodes):
    folder = put(nodes, "tmp", {"probe.py": probe_file()})
    return json.loads(nodes.run(NODE, f"python3 {folder}/probe.py").stdout)


def verdict(document):
    return judge(document, accelerator="H100", accelerator_count=8)


def over_time(document, memory=None):
    """Returns the engine's report, as the lifecycle asks for it."""
    now = datetime(2026, 12, 1, tzinfo=UTC)
    return judge_over_time(document, accelerator="H100", accelerator_count=8, now=now, memory=memory)


@pytest.mark.sandbox
def test_node_when_set_up_from_bare_then_healthy_by_nvml_and_a_fault_makes_it_failed(nodes):
    assert verdict(asked(nodes)).verdict is Verdict.FAILED  # no driver yet

    folder = put(nodes, "opt/setup", setup_files({"accelerator": "H100", "accelerator_count": "8"}))
    done = run_setup(nodes, folder)
    assert done.exit_code == 0, done.stdout
    report = json.loads((nodes.root_of(NODE) / "opt/hostler/setup/report.json").read_text())
    assert report["reboots"] == 1  # a bare image comes with nouveau loaded
    assert report["versions"]["driver"] == report["versions"]["fabric_manager"]

    document = asked(nodes)
    assert (document["source"], document["errors"]) == ("nvml", [])
    assert verdict(document).verdict is Verdict.HEALTHY, verdict(document).reasons
    kernel = nodes.root_of(NODE) / "proc/sys/kernel/random/boot_id"
    assert document["boot_id"] == kernel.read_text().strip()
    well = over_time(document)
    assert (well.verdict, well.reasons) == (Verdict.HEALTHY, ())
    again = run_setup(nodes, folder)
    assert again.exit_code == 0
    assert "  $ " not in again.stdout

    for fault, sign in FAULTS:
        nodes.gpu_fault(NODE, fault)
        told = asked(nodes)
        found = verdict(told)
        assert found.verdict is Verdict.FAILED, fault
        assert any(sign in reason for reason in found.reasons), (sign, found.reasons)
        assert over_time(told, well.memory).verdict is Verdict.FAILED, fault
    nodes.gpu_fault(NODE, {"kind": "driver_hangs"})
    started = time.monotonic()
    assert verdict(asked(nodes)).verdict is Verdict.UNKNOWN
    assert time.monotonic() - started < 30  # the probe's 20 s, and starting a Python on a busy machine
