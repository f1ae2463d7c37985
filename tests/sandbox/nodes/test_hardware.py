"""The real pynvml, and nvidia-smi's XML, over the same state."""

import json
import shutil
import xml.etree.ElementTree as ET

import pytest

from hostler_sandbox.nodes.accelerators import DEVICES

PYTHON = "$HOSTLER_HOME/venv/bin/python"
pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler: nodes have no NVML library")

READ = """
import json, pynvml as n
n.nvmlInit()
out = {"driver": n.nvmlSystemGetDriverVersion(), "cuda": n.nvmlSystemGetCudaDriverVersion(), "devices": []}
for i in range(n.nvmlDeviceGetCount()):
    try:
        h = n.nvmlDeviceGetHandleByIndex(i)
    except n.NVMLError as e:
        out["devices"].append({"error": str(e)})
        continue
    def get(name, *a):
        try:
            return getattr(n, "nvmlDeviceGet" + name)(h, *a)
        except n.NVMLError as e:
            return str(e)
    out["devices"].append({
        "name": get("Name"), "uuid": get("UUID"), "serial": get("Serial"), "bus": get("PciInfo").busId,
        "again": n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(get("UUID"))),
        "total_mib": get("MemoryInfo").total >> 20, "used_v2": get("MemoryInfo", n.nvmlMemory_v2).used >> 20,
        "temperature": get("Temperature", 0), "slowdown": get("TemperatureThreshold", 1), "margin": get("MarginTemperature"),
        "gpu": (lambda u: u if isinstance(u, str) else u.gpu)(get("UtilizationRates")), "power": get("PowerUsage"),
        "ecc": get("EccMode"), "volatile": get("TotalEccErrors", 1, 0), "aggregate": get("TotalEccErrors", 1, 1),
        "remapped": get("RemappedRows"), "retired": get("RetiredPages", 0), "throttle": get("CurrentClocksEventReasons"),
        "gen": get("CurrPcieLinkGeneration"), "width": get("CurrPcieLinkWidth"), "link17": get("NvLinkState", 17),
        "mig": get("MigMode"), "persistence": get("PersistenceMode"), "clock": get("ClockInfo", 1),
        "processes": [(x.pid, x.usedGpuMemory >> 20) for x in get("ComputeRunningProcesses")],
    })
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def gpu(bench):
    node = bench.boot(accelerator_name="H100", accelerator_count=2, image="gpu")
    node.ok("python3 -m venv $HOSTLER_HOME/venv && $HOSTLER_HOME/venv/bin/pip install -q nvidia-ml-py")
    (node.root / "read.py").write_text(READ)
    yield node
    bench.runtime.kill(node.id)


@pytest.fixture
def node(gpu):
    text = gpu.root.parent.joinpath("hardware.state").read_text()
    yield gpu
    gpu.root.parent.joinpath("hardware.state").write_text(text)


def read(node):
    return json.loads(node.ok(f"{PYTHON} read.py"))


def document(node, *more):
    return ET.fromstring(node.ok(" ".join(["nvidia-smi -q -x", *more])))  # noqa: S314 - our own program wrote it


def test_healthy_node_when_read_then_both_ways_agree(node):
    found = read(node)
    assert (found["driver"], found["cuda"]) == ("570.195.03", 12080)
    one = found["devices"][1]
    xml = document(node)
    gpu = xml.findall("gpu")[1]
    assert one["name"] == gpu.findtext("product_name") == "NVIDIA H100 80GB HBM3"
    assert one["uuid"] == gpu.findtext("uuid")
    assert one["bus"] == gpu.get("id")
    assert one["again"] == 1
    assert f"{one['total_mib']} MiB" == gpu.findtext("fb_memory_usage/total") == "81559 MiB"
    assert f"{one['temperature']} C" == gpu.findtext("temperature/gpu_temp")
    assert (one["slowdown"], f"{one['margin']} C") == ("Not Supported", gpu.findtext("temperature/gpu_temp_tlimit"))
    assert (one["remapped"], one["retired"]) == ([0, 0, 0, 0], "Not Supported")
    assert (one["ecc"], one["volatile"], one["throttle"], one["width"], one["link17"]) == ([1, 1], 0, 1, 16, 1)
    assert one["serial"].startswith("SIMULATED")
    assert xml.findtext("driver_version") == "570.195.03"


def test_older_device_when_read_then_it_has_thresholds_and_retired_pages(boot):
    node = boot(accelerator_name="T4", accelerator_count=1, instance_type="g4dn.xlarge", image="gpu")
    node.ok("python3 -m venv $HOSTLER_HOME/venv && $HOSTLER_HOME/venv/bin/pip install -q nvidia-ml-py")
    (node.root / "read.py").write_text(READ)
    one = read(node)["devices"][0]
    assert (one["slowdown"], one["margin"], one["retired"], one["remapped"]) == (89, "Not Supported", [], "Not Supported")
    assert (one["mig"], one["link17"]) == ("Not Supported", "Not Supported")


@pytest.mark.parametrize(
    ("kind", "details", "key", "value"),
    [
        ("ecc", {"count": 4}, "volatile", 4),
        ("ecc_off", {}, "volatile", "Not Supported"),
        ("remap_pending", {}, "remapped", [0, 1, 1, 0]),
        ("remap_failed", {}, "remapped", [0, 0, 0, 1]),
        ("hot", {"temperature_c": 93}, "temperature", 93),
        ("throttle", {"mask": "0x80"}, "throttle", 0x80),
        ("nvlink_down", {"link": 17}, "link17", 0),
        ("pcie", {"width": 8, "generation": 3}, "width", 8),
        ("process", {"pid": 77, "memory_mib": 512}, "processes", [[77, 512]]),
        ("mig", {}, "gpu", "Not Supported"),
        ("set", {"key": "persistence", "value": 0}, "persistence", 0),
    ],
)
def test_fault_when_injected_then_pynvml_shows_it_on_that_device_only(node, kind, details, key, value):
    node.fault(kind, gpu=1, **details)
    devices = read(node)["devices"]
    assert devices[1][key] == value
    assert devices[0][key] != value


def test_lost_device_when_read_then_other_device_still_answers(node):
    node.fault("lost", gpu=0)
    devices = read(node)["devices"]
    assert devices[0] == {"error": "GPU is lost"}
    assert devices[1]["temperature"] == 31
    done = node.run("nvidia-smi -q -x")
    assert done.exit_code == 15
    assert "Unable to determine the device handle for GPU 0000:10:00.0: GPU is lost" in done.stdout
    assert len(document(node, "-i", "1").findall("gpu")) == 1
    rows = node.run("nvidia-smi --query-gpu=index,temperature.gpu --format=csv,noheader").stdout.splitlines()
    assert rows == ["[GPU is lost], [GPU is lost]", "1, 31"]
    assert "NVRM: Xid (PCI:0000:10:00): 79" in node.ok("dmesg")


def test_missing_device_when_read_then_indices_close_up(node):
    node.fault("missing", gpu=0)
    devices = read(node)["devices"]
    assert [one["again"] for one in devices] == [0]
    assert document(node).findtext("attached_gpus") == "1"
    assert node.ok("lspci -nn | grep -c 10de:2330").strip() == "1"


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [("driver_unloaded", 9, "DriverNotLoaded"), ("driver_mismatch", 18, "LibRmVersionMismatch")],
)
def test_driver_when_not_in_order_then_both_ways_fail(node, kind, status, error):
    node.fault(kind)
    assert node.run("nvidia-smi -q -x").exit_code == status
    assert f"NVMLError_{error}" in node.run(f"{PYTHON} read.py").stderr


def test_driver_when_it_hangs_then_calls_do_not_return(node):
    node.fault("driver_hangs")
    for command in ("nvidia-smi", f"{PYTHON} read.py"):
        assert node.run(f"timeout 1 {command}").exit_code == 124


def test_xid_when_it_happens_then_waiting_program_is_told(node):
    code = (
        "import pynvml as n; n.nvmlInit(); s = n.nvmlEventSetCreate(); h = n.nvmlDeviceGetHandleByIndex(1);"
        "n.nvmlDeviceRegisterEvents(h, n.nvmlEventTypeXidCriticalError, s); open('ready', 'w').close();"
        "e = n.nvmlEventSetWait(s, 8000); print(e.eventData, n.nvmlDeviceGetIndex(e.device))"
    )
    started = f'rm -f ready; ({PYTHON} -c "{code}" > told 2>&1 </dev/null &) ; while [ ! -e ready ]; do sleep 0.02; done'
    node.ok(started)
    node.fault("xid", xid=13, gpu=0)
    node.fault("xid", xid=119, gpu=1)
    assert node.ok("while [ ! -s told ]; do sleep 0.02; done; cat told") == "119 1\n"
    assert "Xid (PCI:0000:11:00): 119" in node.ok("journalctl -k -o short-monotonic --no-pager")


def test_fault_when_unknown_then_value_error_names_what_is_allowed(node):
    for fault, words in (({"kind": "x"}, "allowed: xid"), ({"kind": "lost", "gpu": 9}, "this node has 2"),
                         ({"kind": "xid"}, "xid: missing"),
                         ({"kind": "set", "key": "x", "value": 1}, "no such reading")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            node.bench.runtime.gpu_fault(node.id, fault)


def test_reboot_when_faults_were_there_then_transient_ones_are_gone(boot):
    node = boot(accelerator_name="H100", accelerator_count=2, image="gpu")
    for kind in ("lost", "remap_pending", "ecc", "driver_hangs"):
        node.fault(kind, gpu=1)
    node.fault("missing", gpu=0)
    node.bench.runtime.reboot(node.id)
    gpu = document(node).find("gpu")
    assert gpu.findtext("remapped_rows/remapped_row_pending") == "No"
    assert gpu.findtext("ecc_errors/volatile/dram_uncorrectable") == "0"
    assert gpu.findtext("ecc_errors/aggregate/dram_uncorrectable") == "1"
    assert "Xid" not in node.ok("dmesg")


@pytest.mark.parametrize("name", sorted(DEVICES))
def test_every_device_when_shown_then_says_simulated(boot, name):
    node = boot(accelerator_name=name, accelerator_count=1, image="gpu")
    for command in ("nvidia-smi", "nvidia-smi -q", "nvidia-smi -q -x", "nvidia-smi --query-gpu=serial --format=csv"):
        assert "simulated" in node.ok(command).lower()
    assert DEVICES[name].name in node.ok("nvidia-smi -L")
    assert node.run("nvidia-smi nvlink -s && nvidia-smi topo -m && nvidia-smi --version").exit_code == 0


def test_settings_when_changed_by_nvidia_smi_then_they_show(node):
    node.ok("sudo nvidia-smi -pm 0 && sudo nvidia-smi -i 1 -e 0")
    assert node.ok(
        "nvidia-smi --query-gpu=persistence_mode,ecc.mode.current,ecc.mode.pending --format=csv,noheader"
    ).splitlines() == [
        "Disabled, Enabled, Enabled",
        "Disabled, Enabled, Disabled",
    ]
    assert node.run("nvidia-smi --query-gpu=nonsense --format=csv").exit_code == 2
    node.fault("remap_pending", gpu=0)
    node.ok("sudo nvidia-smi -i 0 -r")
    assert document(node).find("gpu").findtext("remapped_rows/remapped_row_pending") == "No"
    assert node.ok("nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits").splitlines()[0] == "81559"


def test_runtime_when_library_is_switched_off_then_only_nvidia_smi_reports(tmp_path, bench):
    bare = type(bench)(tmp_path, use_nvml=False)
    try:
        assert bare.runtime.nvml_library is None
        node = bare.boot(accelerator_name="L4", accelerator_count=1, image="gpu")
        node.ok("python3 -m venv ~/v && ~/v/bin/pip install -q nvidia-ml-py && nvidia-smi -q -x")
        assert "NVMLError_LibraryNotFound" in node.run("~/v/bin/python -c 'import pynvml; pynvml.nvmlInit()'").stderr
    finally:
        bare.runtime.close()
