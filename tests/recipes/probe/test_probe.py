import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostler.recipes.probe import probe

XMLS = Path(__file__).parents[2] / "data" / "nvidia-smi"
SCRIPT = Path(probe.__file__)
SYSTEM_PATH = "/usr/bin:/bin"


class Node:
    """A PATH of small programs and a home, as the probe finds them on a node."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.home = folder / "home"
        self.modules = folder / "modules"
        self.modules.mkdir()
        self.put("lspci", 'echo "00:1e.0 3D controller [0302]: NVIDIA Corporation TU104GL [Tesla T4] [10de:1eb8] (rev a1)"')
        self.put("dmesg", ":")
        self.nvml('raise ImportError("no NVML here")')

    def put(self, name: str, shell: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{shell}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def smi(self, xml: str, *, before: str = "", code: int = 0) -> None:
        (self.bin / "xml").write_text(before + (XMLS / xml).read_text())
        self.put("nvidia-smi", f'case "$*" in *-x*) cat {self.bin}/xml; exit {code};; *) exit 6;; esac')

    def nvml(self, python: str) -> None:
        (self.modules / "pynvml.py").write_text(python)

    def probe(self, **more: str) -> dict:
        env = {"PATH": f"{self.bin}:{SYSTEM_PATH}", "HOSTLER_HOME": str(self.home), "PYTHONPATH": str(self.modules), **more}
        done = subprocess.run([sys.executable, str(SCRIPT)], env=env, capture_output=True, check=True, text=True, timeout=30)
        return json.loads(done.stdout)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.mark.parametrize("path", sorted(XMLS.glob("*.xml")), ids=lambda path: path.stem)
def test_parse_xml_when_a_real_capture_is_read_then_no_field_is_lost_silently(path):
    found = probe.parse_xml(path.read_text())

    assert len(found["accelerators"]) == 1
    entry = found["accelerators"][0]
    assert entry["name"]
    assert entry["error"] is None
    for field in set(probe.XML_FIELDS) - {"nvlink_count", "nvlink_active_count"}:
        assert (entry[field] is None) == (field in entry["missing"]), field


def test_parse_xml_when_mig_is_on_then_utilisation_and_rows_are_missing_with_reason_not_zero():
    entry = probe.parse_xml((XMLS / "a100-sxm4-v12.xml").read_text())["accelerators"][0]

    assert entry["is_mig_enabled"] is True
    assert len(entry["mig_instances"]) == 4
    assert entry["mig_instances"][0] == {"index": 0, "memory_total_mib": 19968}
    assert entry["utilisation_ratio"] is None
    assert entry["missing"]["utilisation_ratio"] == "N/A"
    assert entry["is_remap_pending"] is None


def test_parse_xml_when_a_t4_is_read_then_the_values_are_those_of_the_capture():
    found = probe.parse_xml((XMLS / "tesla-t4.xml").read_text())
    entry = found["accelerators"][0]

    assert (found["driver_version"], found["cuda_version"]) == ("515.105.01", "11.7")
    assert (entry["temperature_c"], entry["temperature_slowdown_c"], entry["temperature_shutdown_c"]) == (40, 93, 96)
    assert (entry["pcie_width"], entry["pcie_width_max"]) == (8, 16)
    assert entry["memory_total_mib"] == 15360
    assert entry["processes"] == [{"pid": 675, "memory_used_mib": 22}, {"pid": 5762, "memory_used_mib": 1005}]
    assert entry["ecc_volatile_uncorrectable_count"] == 0
    assert entry["missing"]["is_remap_pending"] == "N/A"


@pytest.mark.parametrize(
    ("block", "mask"),
    [
        ("<clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>", 0x40),
        ("<clocks_event_reason_hw_power_brake_slowdown>Active</clocks_event_reason_hw_power_brake_slowdown>", 0x80),
        ("<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>", 0x1),
    ],
)
def test_parse_xml_when_throttled_then_the_mask_has_the_drivers_bits(block, mask):
    xml = f"<nvidia_smi_log><gpu><clocks_event_reasons>{block}</clocks_event_reasons></gpu></nvidia_smi_log>"

    assert probe.parse_xml(xml)["accelerators"][0]["throttle_mask"] == mask


def test_parse_xml_when_sram_errors_come_in_parts_then_they_are_added_up():
    counts = "<sram_uncorrectable_parity>2</sram_uncorrectable_parity><sram_uncorrectable_secded>1</sram_uncorrectable_secded>"
    xml = f"<nvidia_smi_log><gpu><ecc_errors><volatile>{counts}</volatile></ecc_errors></gpu></nvidia_smi_log>"

    assert probe.parse_xml(xml)["accelerators"][0]["ecc_volatile_uncorrectable_count"] == 3


@pytest.mark.parametrize(
    ("line", "bus", "why"),
    [
        # JosephKJ/OWOD#81, NVIDIA/dcgm-exporter#604, pdbear/syno_nvidia_gpu_driver#22
        (
            "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU",
            "0000:02:00.0",
            "GPU is lost. Reboot the system to recover this GPU",
        ),
        ("Unable to determine the device handle for GPU 000:BA:80.0: Unknown Error", "000:BA:80.0", "Unknown Error"),
        ("Unable to determine the device handle for GPU0000:07:00.0: Unknown Error", "0000:07:00.0", "Unknown Error"),
    ],
)
def test_parse_xml_when_only_a_lost_gpu_is_told_then_it_is_listed_with_the_words(line, bus, why):
    (entry,) = probe.parse_xml(line + "\n")["accelerators"]

    assert (entry["pci_bus_id"], entry["error"]) == (bus, why)
    assert entry["temperature_c"] is None


def test_probe_when_one_gpu_is_lost_in_the_middle_then_the_others_are_still_reported(node):
    node.smi("tesla-t4.xml", before="Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.\n", code=15)

    found = node.probe()

    assert [entry["error"] for entry in found["accelerators"]] == [None, "GPU is lost."]
    assert found["accelerators"][0]["temperature_c"] == 40


def test_probe_when_a_lost_gpu_spoils_the_answer_then_each_one_is_asked_alone(node):
    card = "01:00.0 3D controller [0302]: NVIDIA Corporation TU104GL [Tesla T4] [10de:1eb8]"
    node.put("lspci", f'echo "{card}"; echo "{card}"')
    node.smi("tesla-t4.xml")
    lost = "Unable to determine the device handle for GPU 0000:02:00.0: Unknown Error"
    node.put("nvidia-smi", f'case "$*" in "-q -x -i 1") cat {node.bin}/xml;; *) echo "{lost}"; exit 255;; esac')

    found = node.probe()

    assert sorted((entry["index"], entry["error"]) for entry in found["accelerators"] if entry["index"] is not None) == [
        (1, None)
    ]
    assert [entry["error"] for entry in found["accelerators"] if entry["index"] is None] == ["Unknown Error"]


def test_probe_when_there_is_no_driver_then_source_is_none_and_the_words_are_kept(node):
    words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    node.put("nvidia-smi", f'echo "{words}"; exit 9')

    found = node.probe()

    assert (found["source"], found["accelerators"]) == ("none", [])
    assert any(words in error and "exit status 9" in error for error in found["errors"])
    assert found["pci_accelerator_count"] == 1


@pytest.mark.parametrize(
    "output", ["", "Segmentation fault", "<nvidia_smi_log><gpu></nvidia_smi_log>", "\\377\\376\\000 <?xml"]
)
def test_probe_when_nvidia_smi_prints_garbage_then_nothing_is_invented(node, output):
    node.put("nvidia-smi", f"printf '{output}'")

    found = node.probe()

    assert (found["source"], found["accelerators"]) == ("none", [])
    assert any(error.startswith("nvidia-smi: ") for error in found["errors"])


def test_probe_when_nvidia_smi_hangs_then_it_says_so_in_time(node):
    node.put("nvidia-smi", "exec sleep 60")
    started = time.monotonic()

    found = node.probe()

    assert time.monotonic() - started < 20
    assert any("nvidia-smi: no answer in" in error for error in found["errors"])


FAKE_NVML = """
import time
class NVMLError(Exception): pass
NVML_TEMPERATURE_GPU = 0
def nvmlInit(): pass
def nvmlSystemGetCudaDriverVersion(): return 12080
def nvmlDeviceGetCount(): return 3
def nvmlSystemGetDriverVersion(): return "570.86.15"
def nvmlDeviceGetName(handle): return "NVIDIA H100 80GB HBM3"
def nvmlDeviceGetTemperature(handle, sensor): return 40 + handle
def nvmlDeviceGetHandleByIndex(index):
    if index == 1:
        SICK
    return index
"""


def test_probe_when_nvml_answers_then_it_is_the_source_and_missing_calls_are_named(node):
    node.nvml(FAKE_NVML.replace("SICK", "raise NVMLError('GPU is lost')"))

    found = node.probe()

    assert (found["source"], found["driver_version"], found["cuda_version"]) == ("nvml", "570.86.15", "12.8")
    assert [entry["error"] for entry in found["accelerators"]] == [None, "GPU is lost", None]
    assert [entry["temperature_c"] for entry in found["accelerators"]] == [40, None, 42]
    assert "nvmlDeviceGetRemappedRows" in found["accelerators"][0]["missing"]["is_remap_pending"]


def test_probe_when_the_library_fills_the_sram_struct_by_its_address_then_the_flag_is_read(node):
    sram = """
import ctypes


class c_nvmlEccSramErrorStatus_v1_t(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("counts", ctypes.c_ulonglong * 11), ("bThresholdExceeded", ctypes.c_uint)]


def nvmlDeviceGetSramEccErrorStatus(handle, status):
    # As the real binding hands it to C: an address; by value the library would write into nowhere.
    ctypes.cast(status, ctypes.POINTER(c_nvmlEccSramErrorStatus_v1_t)).contents.bThresholdExceeded = handle == 1
"""
    node.nvml(FAKE_NVML.replace("SICK", "pass") + sram)

    assert [entry["is_sram_threshold_exceeded"] for entry in node.probe()["accelerators"]] == [False, True, False]


def test_probe_when_nvml_hangs_in_the_middle_then_what_it_said_before_is_kept(node):
    node.nvml(FAKE_NVML.replace("SICK", "time.sleep(60)"))

    found = node.probe()

    assert [entry["temperature_c"] for entry in found["accelerators"]] == [40, None, None]
    assert "no answer in" in found["accelerators"][1]["missing"]["temperature_c"]
    assert found["accelerators"][1]["error"] is None


def test_probe_when_nvml_crashes_before_the_first_device_then_nvidia_smi_is_asked(node):
    node.nvml("import os\n" + FAKE_NVML.replace("return index", "os.kill(os.getpid(), 11)").replace("SICK", "pass"))
    node.smi("tesla-t4.xml")

    found = node.probe()

    assert found["source"] == "nvidia-smi"
    assert found["errors"] == ["nvml: exit status -11"]
    assert found["accelerators"][0]["temperature_c"] == 40


def test_probe_when_the_library_does_not_fit_the_driver_then_both_answers_are_kept(node):
    node.nvml("def nvmlInit(): raise RuntimeError('Driver/library version mismatch')")
    node.put("nvidia-smi", 'echo "Failed to initialize NVML: Driver/library version mismatch"; exit 18')

    found = node.probe()

    assert found["source"] == "none"
    assert sum("version mismatch" in error for error in found["errors"]) == 2


def test_probe_when_the_kernel_log_has_xids_then_they_carry_the_kernels_seconds(node):
    node.put("dmesg", 'echo "[  812.345678] NVRM: Xid (PCI:0000:00:1e): 79, pid=1234, GPU has fallen off the bus."')

    found = node.probe()

    assert found["kernel_log"]["is_readable"] is True
    assert [(xid["code"], xid["pci_bus_id"], xid["at_uptime_s"]) for xid in found["xids"]] == [(79, "0000:00:1e", 812.345678)]


def test_probe_when_the_node_has_a_root_of_its_own_then_its_boot_is_that_roots(node, tmp_path):
    own = tmp_path / "root" / "proc" / "sys" / "kernel" / "random"
    own.mkdir(parents=True)
    (own / "boot_id").write_text("11111111-2222-3333-4444-555555555555\n")

    assert node.probe(HOSTLER_ROOT=str(tmp_path / "root"))["boot_id"] == "11111111-2222-3333-4444-555555555555"
    assert node.probe()["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_probe_when_the_kernel_log_is_closed_then_it_says_why(node):
    for program in ("dmesg", "sudo", "journalctl"):
        node.put(program, f'echo "{program}: read kernel buffer failed: Operation not permitted" >&2; exit 1')

    found = node.probe()

    assert found["kernel_log"]["is_readable"] is False
    assert "Operation not permitted" in found["kernel_log"]["reason"]


@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_probe_when_an_old_python_runs_it_then_it_still_speaks(version, tmp_path):
    found = sorted(Path(os.environ.get("PYENV_ROOT", "/nonexistent"), "versions").glob(f"{version}.*/bin/python"))
    if not found:
        pytest.skip(f"no Python {version} here")
    done = subprocess.run([found[0], SCRIPT], capture_output=True, check=True, timeout=30, env={"PATH": SYSTEM_PATH})
    assert json.loads(done.stdout)["version"] == 1
