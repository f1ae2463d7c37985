"""Short outputs of nvidia-smi, AMD's tools, TPUs, the probe, and who recognises what."""

import json

import pytest
from tests.health.sources.samples import AMD, DATA, NVLINKS, PROBE, TPU, planted, rocm, section

from hostler.health.sources import SOURCES, explain


def only(health):
    (accelerator,) = health.accelerators
    return accelerator


def test_nvlink_when_all_links_are_up_then_healthy_and_one_that_is_down_failed():
    health = explain(planted(NVLINKS, "Link 3: 25 GB/s", "Link 3: <inactive>"), name="")

    assert explain(NVLINKS, name="").verdict == "healthy"
    assert [one.verdict for one in health.accelerators] == ["failed", "healthy"]
    assert health.accelerators[0].findings[0].evidence == "inactive: link 3"
    assert health.action == "restart_service"


@pytest.mark.parametrize(
    ("name", "text", "verdict"),
    [
        ("NVIDIA H100 80GB HBM3", "Nvlink queries are not supported for Devices in MIG mode", "healthy"),
        ("NVIDIA L40S", "Device does not have or support Nvlink", "healthy"),
        ("NVIDIA H100 80GB HBM3", "Unable to retrieve NVLink information as all links are inActive", "failed"),
        ("NVIDIA H100 PCIe", "Unable to retrieve NVLink information as all links are inActive", "degraded"),
        ("NVIDIA H100 80GB HBM3", "", "unknown"),
        ("NVIDIA H100 80GB HBM3", "\t Link 0: 26.562 GB/s", "unknown"),
        ("NVIDIA H100 80GB HBM3", "Something else", "unknown"),
    ],
)
def test_nvlink_when_no_link_or_not_all_are_told_then_the_words_and_the_model_decide(name, text, verdict):
    health = explain(f"GPU 0: {name} (UUID: GPU-0)\n{text}\n", name="", command="nvidia-smi nvlink -s")

    assert only(health).verdict == verdict


@pytest.mark.parametrize("title", ["capabilities :: list", "capabilities :: topo", "capabilities :: version", "load :: pmon"])
def test_listing_when_gpus_are_only_named_then_their_health_is_unknown(title):
    command, text = section("h100-mig", title)

    assert explain(text, name="", command=command).verdict == "unknown"
    assert explain(text, name="").source == explain(text, name="", command=command).source


def test_dmon_when_a_sample_is_hot_then_degraded():
    text = section("h100-80gb", "load :: dmon")[1]

    assert explain(text, name="").verdict == "healthy"
    assert explain(text.replace("    636     65", "    636     91"), name="").verdict == "degraded"


def test_version_when_tool_and_driver_differ_in_the_last_number_then_said():
    text = (
        "NVIDIA-SMI version  : 570.124.04\nNVML version        : 570.124\nDRIVER version      : 570.124.06\nCUDA Version : 12.8"
    )

    assert [finding.code for finding in explain(text, name="").findings] == ["driver.mixed_versions"]


@pytest.mark.parametrize(("name", "count"), [("telegraf_mi100_rocm571", 6), ("telegraf_rx6700xt_rocm430", 1)])
def test_rocm_when_it_is_a_real_capture_then_all_cards_are_healthy_and_ecc_is_not_told(name, count):
    health = explain(rocm(name), name="")

    assert (health.source, health.verdict, len(health.accelerators)) == ("rocm-smi", "healthy", count)
    assert "ECC errors are not told by this document" in health.unknown


def test_rocm_when_the_topology_names_more_cards_than_are_listed_then_unknown():
    health = explain(rocm("telegraf_vega-20-WKS-GL-XE"), name="")

    assert (only(health).verdict, health.verdict) == ("healthy", "unknown")


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ('junction) (C)": "34.0"', 'junction) (C)": "103.0"', "degraded"),
        ('junction) (C)": "34.0"', 'junction) (C)": "112.0"', "failed"),
        ('memory) (C)": "30.0"', 'memory) (C)": "99.0"', "degraded"),
        ('memory) (C)": "30.0"', 'memory) (C)": "N/A"', "unknown"),
        ('"Temperature (Sensor junction) (C)": "34.0",', "", "unknown"),
    ],
)
def test_rocm_when_one_sensor_of_six_cards_is_bad_or_missing_then_that_card_is(old, new, verdict):
    health = explain(planted(rocm("telegraf_mi100_rocm571"), old, new), name="")

    assert [one.verdict for one in health.accelerators] == [verdict] + ["healthy"] * 5


def metric(**changes):
    entries = json.loads(AMD)
    for path, value in changes.items():
        *steps, last = path.split("__")
        at = entries[0]
        for step in steps:
            at = at.setdefault(step, {})
        at[last] = value
    return entries


@pytest.mark.parametrize(
    ("changes", "code", "verdict"),
    [
        ({}, None, "healthy"),
        ({"ecc__total_uncorrectable_count": 1}, "ecc.volatile_uncorrectable", "failed"),
        ({"ecc_blocks__UMC": {"uncorrectable_count": 2}}, "ecc.volatile_uncorrectable", "failed"),
        ({"ecc__total_deferred_count": 1}, "ecc.deferred", "degraded"),
        ({"ecc__total_uncorrectable_count": "N/A"}, "reading.ecc_volatile_uncorrectable_count", "unknown"),
        ({"ecc": "N/A"}, "reading.ecc_volatile_uncorrectable_count", "unknown"),
        ({"ecc": {}}, "reading.ecc", "unknown"),
        ({"temperature__hotspot": {"value": 101, "unit": "C"}}, "thermal.warning", "degraded"),
        ({"temperature__hotspot": 111}, "thermal.slowdown", "failed"),
        ({"temperature__hotspot": "N/A"}, "reading.temperature_c", "unknown"),
        ({"power__throttle_status": "THROTTLED"}, "clocks.throttled", "degraded"),
        ({"throttle__hbm_thermal_violation_status": "ACTIVE"}, "clocks.throttled", "degraded"),
        ({"throttle__ppt_violation_status": "ACTIVE"}, None, "healthy"),
        ({"xgmi_err": {"read_error_count": 2}}, "xgmi.errors", "degraded"),
        ({"un_res": [{"page": 1}]}, "pages.failed", "failed"),
        ({"pending": [{"page": 1}]}, "pages.pending", "failed"),
    ],
)
def test_amd_when_one_reading_is_bad_or_missing_then_the_finding_names_it_in_every_wrapping(changes, code, verdict):
    entries = metric(**changes)
    texts = (
        json.dumps(entries, indent=4),
        json.dumps({"gpu_data": entries}),
        "WARNING: not in the render group\n" + json.dumps(entries),
    )
    for text in texts:
        health = explain(text, name="")
        assert health.source == "amd-smi"
        assert [one.verdict for one in health.accelerators] == [verdict, "healthy"]
        assert code is None or code in [finding.code for finding in health.accelerators[0].findings]


def test_amd_when_utilisation_is_not_told_then_it_is_unknown_and_not_0():
    health = explain(json.dumps(metric(usage="N/A")), name="")

    assert any(text.startswith("accelerator 0: utilisation_ratio") for text in health.unknown)


@pytest.mark.parametrize("cut", [1, 40, 200, 500])
def test_amd_when_the_document_is_cut_then_unknown(cut):
    assert explain(AMD[:-cut], name="", command="amd-smi metric --json").verdict == "unknown"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "ERROR:root:Unable to detect any GPU devices, check amdgpu version and module status (sudo modprobe amdgpu)",
            "driver.not_loaded",
        ),
        ("Driver not initialized (amdgpu not found in modules)", "driver.not_loaded"),
        ("bash: rocm-smi: command not found", "driver.not_installed"),
        ("amdsmi_exception.AmdSmiLibraryException: Error code:\n\t34 | AMDSMI_STATUS_DRIVER_NOT_LOADED", "driver.not_loaded"),
    ],
)
def test_amd_when_its_tools_fail_then_the_node_failed(text, code):
    health = explain(text, name="")

    assert (health.verdict, health.findings[0].code) == ("failed", code)


def test_amd_when_a_device_has_an_error_line_then_that_device_failed():
    # ROCm/rocm_smi_lib#85
    text = (
        'Expected integer value from monitor, but got ""\nERROR: 15 GPU[3]: power: Data was not of the type that was expected\n'
    )
    accelerator = only(explain(text, name="", command="rocm-smi"))

    assert (accelerator.index, accelerator.verdict) == (3, "failed")


@pytest.mark.parametrize(
    ("changes", "verdict", "action"),
    [
        ({}, "healthy", "none"),
        ({"health": "UNHEALTHY_MAINTENANCE"}, "failed", "restart_app"),
        ({"health": "UNHEALTHY_TENSORFLOW"}, "failed", "restart_service"),
        ({"health": "TIMEOUT"}, "failed", "reboot_node"),
        ({"health": "DEPRECATED_UNHEALTHY"}, "failed", "drain_and_replace"),
        ({"health": "HEALTH_UNSPECIFIED"}, "unknown", "record"),
        ({"health": "SOMETHING_NEW"}, "unknown", "record"),
        ({"health": None}, "unknown", "record"),
        ({"state": None}, "unknown", "record"),
        ({"state": "CREATING"}, "unknown", "record"),
        ({"state": "PREEMPTED"}, "failed", "drain_and_replace"),
        ({"state": "REPAIRING"}, "failed", "drain_and_replace"),
        ({"symptoms": [{"symptomType": "MESH_BUILD_FAIL"}]}, "failed", "restart_service"),
        ({"symptoms": [{"symptomType": "HBM_OUT_OF_MEMORY"}]}, "degraded", "restart_app"),
    ],
)
def test_tpu_when_the_api_tells_of_a_node_then_both_state_and_health_count(changes, verdict, action):
    node = {**json.loads(TPU), **changes}
    yaml = "\n".join(f"{key}: {value}" for key, value in node.items() if isinstance(value, str))
    for text in (json.dumps(node, indent=2), json.dumps([node]), json.dumps({"nodes": [node]})):
        health = explain(text, name="")
        assert (health.source, health.verdict, health.action) == ("tpu-node", verdict, action)
    if "symptoms" not in changes:
        assert explain(yaml, name="", command="gcloud compute tpus tpu-vm describe n").verdict == verdict


CHIPS = """\
Accelerator type: v6e
TPU Chips
┏━━━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━┓
┃ Chip        ┃ Type         ┃ Devices ┃ PID     ┃
┡━━━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━┩
│ /dev/vfio/0 │ TPU v6e chip │ 1       │ 1469584 │
│ /dev/vfio/1 │ TPU v6e chip │ 1       │ 1469584 │
└─────────────┴──────────────┴─────────┴─────────┘
"""
USE = """\
TPU Runtime Utilization
┏━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┓
┃ Chip   ┃ HBM Usage (GiB)          ┃ Duty cycle ┃
┡━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━┩
│ 8      │ 18.45 GiB / 31.25 GiB    │    100.00% │
│ 9      │ 10.40 GiB / 31.25 GiB    │      0.00% │
└────────┴──────────────────────────┴────────────┘
"""


def test_tpu_info_when_a_program_runs_then_healthy_and_without_one_unknown_not_idle():
    # shape of AI-Hypercomputer/cloud-accelerator-diagnostics, tpu_info/README.md
    silent = explain(CHIPS + "WARNING: Libtpu metrics unavailable. Did you start a workload?\n", name="")

    assert explain(CHIPS + USE, name="").verdict == "healthy"
    assert silent.verdict == "unknown"
    assert all("unknown, not 0" in one.findings[0].what for one in silent.accelerators)
    assert explain((CHIPS + USE).replace("│", "|"), name="").verdict == "healthy"
    assert explain(CHIPS.replace("/dev/vfio/1", "/dev/vfio/3") + USE, name="").verdict == "unknown"
    assert explain(CHIPS + USE.replace("10.40 GiB / 31.25 GiB ", "N/A"), name="").verdict == "unknown"
    assert explain("No TPU chips found.", name="", command="tpu-info").verdict == "failed"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("RuntimeError: Unable to initialize backend 'tpu': UNAVAILABLE: failed to open /dev/accel0", "restart_service"),
        (
            "The TPU is already in use by process with pid 4242. Not attempting to load libtpu.so in this process.",
            "restart_app",
        ),
        ("libtpu: uncorrectable error in HBM of chip 2", "drain_and_replace"),
    ],
)
def test_tpu_when_the_runtime_complains_then_its_words_decide(text, action):
    assert explain(text, name="").action == action


def probe(**changes):
    document = json.loads(PROBE)
    document["accelerators"][0].update(changes.pop("device", {}))
    return json.dumps({**document, **changes})


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "healthy"),
        ({"device": {"has_remap_failed": True}}, "failed"),
        ({"device": {"error": "GPU is lost"}}, "failed"),
        ({"device": {"temperature_c": None}}, "unknown"),
        ({"device": {"temperature_c": "59"}}, "unknown"),
        ({"device": {"is_persistent": False}}, "degraded"),
        ({"device": {"nvlink_active_count": 17}}, "failed"),
        ({"driver_version": None}, "unknown"),
        ({"kernel_log": None}, "unknown"),
        ({"pci_accelerator_count": 8}, "failed"),
        ({"version": 2}, "unknown"),
        ({"accelerators": []}, "unknown"),
        ({"accelerators": [], "errors": ["nvml: Driver Not Loaded"]}, "failed"),
        (
            {"xids": [{"code": 79, "pci_bus_id": "0000:00:09", "at_uptime_s": 1.0, "line": "NVRM: Xid (PCI:0000:00:09): 79"}]},
            "failed",
        ),
    ],
)
def test_probe_when_a_document_is_explained_then_it_is_judged_as_the_first_verdict_would(changes, verdict):
    health = explain(probe(**changes), name="")

    assert (health.source, health.verdict) == ("probe", verdict)


def test_sources_when_listed_then_every_kind_is_named_once_and_a_wrong_one_is_refused_with_the_list():
    with pytest.raises(ValueError, match=r"no source 'x'; there are .*nvidia-smi-xml"):
        explain("", name="", kind="x")
    assert all(kind == source.kind for kind, source in SOURCES.items())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("\x00\x01\x02", "binary"),
        ("\ufffd" * 100, "binary"),
        ("hello", "no source recognises"),
        ("<nvidia_smi_log>" + " " * (17 * 1024 * 1024), "limit"),
    ],
)
def test_explain_when_there_is_nothing_to_read_then_unknown_with_the_reason(text, why):
    health = explain(text, name="")

    assert health.verdict == "unknown"
    assert why in health.reasons[0]


def test_data_when_committed_then_the_notice_names_it():
    notice = (DATA.parents[1] / "NOTICE").read_text(encoding="utf-8")

    assert all(f"tests/data/{folder}" in notice for folder in ("nvidia-smi", "gpu-captures", "rocm-smi"))
