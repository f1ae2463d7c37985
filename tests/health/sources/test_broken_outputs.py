"""Outputs that people reported, with the verdict that their reader should have reached, in our words."""

import json

import pytest
from tests.health.sources.samples import SHARED, needs_shared

from hostler.health.sources import explain

# id -> what the label says, verdict and action of the node, (index, pci, verdict) of each accelerator that the output tells of
RIGHT = {
    "smi-lost-1": (
        "GPU lost, node needs reboot; the others are not listed", "failed", "reboot_node", [(None, "0000:02:00.0", "failed")]),
    "smi-unknown-1": ("GPU disconnected, malformed bus id", "failed", "reboot_node", [(None, "000:BA:80.0", "failed")]),
    "smi-unknown-2": ("GPU unreachable, no space before its id", "failed", "reboot_node", [(None, "0000:07:00.0", "failed")]),
    "smi-unknown-4": ("unhealthy", "failed", "reboot_node", [(None, "0000:09:00.0", "failed")]),
    "smi-mixed-1": (
        "GPU 0 and 2 healthy, one unhealthy, never 0", "failed", "reboot_node",
        [(0, None, "healthy"), (1, "0000:02:00.0", "failed"), (2, None, "healthy")]),
    "smi-loop-1": ("one good sample, then errors: unknown, not idle", "unknown", "record", [(None, None, "unknown")]),
    "smi-mismatch-1": ("drain, then reboot, never end at once", "failed", "reboot_node", []),
    "smi-mismatch-2": ("still a mismatch: compare the full version", "failed", "reboot_node", []),
    "smi-nodriver-1": ("retry driver setup and reboot once, else replace", "failed", "reboot_node", []),
    "mig-nvlink-1": ("NVLink does not apply under MIG, not failed", "healthy", "none", [(0, None, "healthy")]),
    "mig-reset-1": (
        "the old layout stays, never report the new one", "degraded", "record",
        [(None, f"00000000:{bus}:00.0", "degraded") for bus in ("01", "47", "81", "C2")]),
}  # fmt: skip


def cases():
    if SHARED is None:
        return {}
    lines = (SHARED / "broken_outputs.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


@needs_shared
@pytest.mark.parametrize("name", RIGHT)
def test_explain_when_an_output_is_broken_then_the_verdict_is_the_labelled_one(name):
    case = cases()[name]
    health = explain(case["stdout"], name="", command=case["command"], exit_code=case["exit_code"])

    _, verdict, action, accelerators = RIGHT[name]
    assert (health.verdict, health.action) == (verdict, action)
    assert [(one.index, one.pci, one.verdict) for one in health.accelerators] == accelerators


@needs_shared
@pytest.mark.parametrize("name", sorted(set(RIGHT) - {"smi-loop-1"}))
def test_explain_when_nothing_but_the_text_is_known_then_the_verdict_is_the_same(name):
    health = explain(cases()[name]["stdout"], name="")

    assert (health.verdict, health.action) == RIGHT[name][1:3]


@needs_shared
@pytest.mark.parametrize("path", sorted(SHARED.rglob("*")) if SHARED else [], ids=lambda path: path.name)
def test_explain_when_given_any_file_of_the_collection_then_it_answers(path):
    if path.is_file():
        health = explain(path.read_text(encoding="utf-8", errors="replace"), name=path.name)
        assert health.verdict in {"healthy", "degraded", "failed", "unknown"}


@pytest.mark.parametrize(
    ("text", "code", "action"),
    [
        # texts of public issues: the number of the device before its address, lower case, no reason that is known
        ("Unable to determine the device handle for GPU0: 0000:01:00.0: Unknown Error", "device.unreachable", "reboot_node"),
        ("Unable to determine the device handle for gpu 0000:0A:00.0: GPU requires reset", "driver.reset_required", "reset_gpu"),
        ("Unable to determine the device handle for GPU 0000:83:00.0: it is insufficiently powered.", "device.power_cable",
         "drain_and_replace"),
        ("Unable to determine the device handle for GPU 00000000:4E:00.0: GPU is lost.  Reboot the system to recover this GPU",
         "device.lost", "reboot_node"),
        ("Unable to determine the device handle for GPU 0000:01:00.0: Something New", "device.unreachable", "reboot_node"),
    ],
)  # fmt: skip
def test_explain_when_one_device_is_named_then_it_alone_is_judged(text, code, action):
    (accelerator,) = explain(text, name="").accelerators

    assert (accelerator.verdict, accelerator.action) == ("failed", action)
    assert accelerator.pci
    assert accelerator.findings[0].code == code


@pytest.mark.parametrize(
    ("text", "code", "verdict"),
    [
        ("Failed to initialize NVML: Driver Not Loaded", "driver.not_loaded", "failed"),
        ("NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.", "driver.not_loaded", "failed"),
        ("No devices were found", "count.none", "failed"),
        ("bash: nvidia-smi: command not found", "driver.not_installed", "failed"),
        ("'nvidia-smi' is not recognized as an internal or external command,", "driver.not_installed", "failed"),
        ('exec: "nvidia-smi": executable file not found in $PATH: unknown', "driver.not_installed", "failed"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "driver.not_installed", "failed"),
        ("Failed to initialize NVML: Unknown Error", "driver.no_access", "unknown"),
        ("Failed to initialize NVML: Insufficient Permissions", "reading.no_permission", "unknown"),
        ("Failed to initialize NVML: GPU access blocked by the operating system", "reading.blocked", "unknown"),
    ],
)
def test_explain_when_the_tool_itself_fails_then_the_node_is_judged_and_no_gpu_is_counted(text, code, verdict):
    health = explain(text, name="", command="nvidia-smi")

    assert health.accelerators == ()
    assert (health.findings[0].code, health.verdict) == (code, verdict)


@pytest.mark.parametrize(("status", "code"), [(9, "driver.not_loaded"), (15, "device.lost"), (18, "driver.mismatch")])
def test_explain_when_the_tool_says_nothing_then_its_exit_status_speaks(status, code):
    health = explain("", name="", command="nvidia-smi", exit_code=status)

    assert (health.findings[0].code, health.verdict) == (code, "failed")


@pytest.mark.parametrize("status", [None, 0, 1, 124, 255])
def test_explain_when_neither_text_nor_status_is_known_then_unknown(status):
    assert explain("", name="", command="nvidia-smi", exit_code=status).verdict == "unknown"
