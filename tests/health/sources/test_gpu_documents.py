"""nvidia-smi's whole documents: XML, plain query, table and captures of many drivers."""

import json

import pytest
from tests.health.sources.samples import SHARED, capture, needs_shared, planted, section, xml

from hostler.health.sources import explain
from hostler.health.sources.document import document


def codes(accelerator):
    return [finding.code for finding in accelerator.findings]


@pytest.mark.parametrize(
    ("name", "verdict", "found"),
    [
        ("a10g", "healthy", ["persistence.off"]),
        ("tesla-t4", "healthy", ["persistence.off"]),
        ("quadro-p2000-v12", "healthy", []),
        # no throttle block: whole blocks are missing, so it is not known
        ("gtx-1070-ti", "unknown", ["reading.throttle_mask"]),
        # rows cannot be read while MIG instances are active
        ("a100-sxm4-v12", "unknown", ["persistence.off", "mig.on", "reading.is_remap_pending", "reading.has_remap_failed"]),
    ],
)
def test_xml_when_it_is_a_real_capture_then_every_gpu_has_its_verdict(name, verdict, found):
    health = explain(xml(name), name=f"{name}.xml")

    (accelerator,) = health.accelerators
    assert health.source == "nvidia-smi-xml"
    assert (accelerator.index, accelerator.verdict) == (0, verdict)
    assert codes(accelerator) == found
    assert accelerator.pci.startswith("00000000:")
    assert accelerator.uuid.startswith("GPU-")


def test_xml_when_mig_is_on_then_utilisation_is_unknown_and_the_instances_are_counted():
    health = explain(xml("a100-sxm4-v12"), name="")

    assert "accelerator 0: utilisation_ratio: N/A" in health.unknown
    assert "MIG is on, 4 instances" in next(f.what for f in health.accelerators[0].findings if f.code == "mig.on")


def test_xml_when_more_gpus_are_attached_than_listed_then_the_node_is_unknown_unless_one_was_asked_for():
    text = planted(xml("a10g"), "<attached_gpus>1", "<attached_gpus>8")

    assert explain(text, name="").verdict == "unknown"
    assert explain(text, name="", command="nvidia-smi -q -x -i 3").verdict == "healthy"


@pytest.mark.parametrize(
    ("old", "new", "code", "verdict", "action"),
    [
        ("<remapped_row_failure>No", "<remapped_row_failure>Yes", "rows.remap_failed", "failed", "drain_and_replace"),
        ("<remapped_row_pending>No", "<remapped_row_pending>Yes", "rows.remap_pending", "failed", "reset_gpu"),
        ("<remapped_row_unc>0", "<remapped_row_unc>513", "rows.remapped", "failed", "drain_and_replace"),
        ("histogram_none>0 bank", "histogram_none>2 bank", "rows.banks_none", "failed", "drain_and_replace"),
        ("histogram_low>0 bank", "histogram_low>2 bank", "rows.banks_low", "degraded", "record"),
        ("<dram_uncorrectable>0", "<dram_uncorrectable>1", "ecc.volatile_uncorrectable", "failed", "reset_gpu"),
        ("<gpu_temp>17 C", "<gpu_temp>88 C", "thermal.warning", "degraded", "record"),
        ("<gpu_temp>17 C", "<gpu_temp>95 C", "thermal.slowdown", "failed", "drain_and_diag"),
        ("hw_thermal_slowdown>Not Active", "hw_thermal_slowdown>Active", "throttle.hardware_thermal", "degraded", "record"),
        ("<current_ecc>Enabled", "<current_ecc>Disabled", "ecc.disabled", "degraded", "record"),
        ("<pending_ecc>Enabled", "<pending_ecc>Disabled", "ecc.mode_pending", "degraded", "record"),
        ("<gpu_temp>17 C", "<gpu_temp>GPU is lost", "device.lost", "failed", "reboot_node"),
        ("<gpu_temp>17 C", "<gpu_temp>Unknown Error", "device.unreachable", "failed", "reboot_node"),
        ("<gpu_temp>17 C", "<gpu_temp>[GPU requires reset]", "driver.reset_required", "failed", "reset_gpu"),
        ("<gpu_temp>17 C", "<gpu_temp>N/A", "reading.temperature_c", "unknown", "record"),
    ],
)
def test_xml_when_one_value_of_a_healthy_gpu_is_bad_then_the_finding_names_it(old, new, code, verdict, action):
    (accelerator,) = explain(planted(xml("a10g"), old, new), name="").accelerators

    assert code in codes(accelerator)
    assert (accelerator.verdict, accelerator.action) == (verdict, action)
    assert all(finding.evidence and finding.source for finding in accelerator.findings)


def test_xml_when_a_device_between_the_limits_is_hot_then_its_own_limit_counts_and_not_the_default():
    # A10G: 88 C to work at, 95 C slows down; 86 C is above the default of 85 C
    (accelerator,) = explain(planted(xml("a10g"), "<gpu_temp>17 C", "<gpu_temp>86 C"), name="").accelerators

    assert accelerator.verdict == "healthy"


def test_xml_when_pages_wait_for_retirement_after_double_bit_errors_then_reboot():
    text = planted(xml("tesla-t4"), "<pending_retirement>No", "<pending_retirement>Yes")
    start = text.index("<double_bit_retirement>")
    text = text[:start] + planted(text[start:], "<retired_count>0", "<retired_count>2")
    (accelerator,) = explain(text, name="").accelerators

    assert codes(accelerator)[-1] == "pages.pending"
    assert (accelerator.verdict, accelerator.action) == ("failed", "reboot_node")


def test_xml_when_a_link_is_narrow_then_only_a_busy_gpu_is_blamed():
    narrow = planted(xml("a10g"), "<current_link_width>8x", "<current_link_width>4x")
    busy = planted(narrow, "<gpu_util>0 %", "<gpu_util>97 %")

    assert explain(narrow, name="").verdict == "healthy"
    assert "pcie.width" in codes(explain(busy, name="").accelerators[0])
    assert explain(busy, name="").verdict == "degraded"
    assert explain(planted(narrow, "<gpu_util>0 %", "<gpu_util>N/A"), name="").verdict == "unknown"


def test_xml_when_it_is_cut_then_the_whole_gpus_before_are_judged_and_the_rest_is_unknown():
    body = xml("a10g")
    start, end = body.index("<gpu id"), body.index("</gpu>") + 6
    bad = planted(body[start:end], "<remapped_row_failure>No", "<remapped_row_failure>Yes")
    text = body[:start] + bad + body[start:end][:5000]
    health = explain(text, name="")

    assert [one.verdict for one in health.accelerators] == ["failed", "unknown"]
    assert any("cut or malformed" in text for text in health.unknown)


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><nvidia_smi_log><gpu id="1">&b;</gpu></nvidia_smi_log>',
        "<nvidia_smi_log>" + "<a>" * 5000 + "</a>" * 5000 + "</nvidia_smi_log>",
        "<nvidia_smi_log></nvidia_smi_log>",
        "<nvidia_smi_log",
    ],
)
def test_xml_when_it_is_hostile_or_hollow_then_unknown(text):
    assert explain(text, name="").verdict == "unknown"


def test_xml_when_no_gpu_is_attached_then_failed():
    health = explain(
        "<nvidia_smi_log><driver_version>590.1</driver_version><attached_gpus>0</attached_gpus></nvidia_smi_log>", name=""
    )

    assert (health.verdict, health.findings[0].code) == ("failed", "count.none")


@pytest.mark.parametrize(
    ("brand", "name", "ecc", "verdict"),
    [
        # a desk card without ECC tells nothing of it; a data-centre card must
        ("GeForce", "NVIDIA GeForce RTX 3090", "N/A", "healthy"),
        ("NVIDIA RTX", "NVIDIA RTX PRO 6000 Blackwell", "Disabled", "healthy"),
        ("NVIDIA", "NVIDIA A10G", "N/A", "unknown"),
    ],
)
def test_xml_when_ecc_is_not_told_then_it_counts_only_against_cards_that_have_it(brand, name, ecc, verdict):
    text = planted(planted(xml("a10g"), "NVIDIA A10G", name), "<product_brand>NVIDIA", f"<product_brand>{brand}")
    text = text.replace("ecc>Enabled", f"ecc>{ecc}")
    for part in ("sram", "dram"):
        text = text.replace(f"{part}_uncorrectable>0", f"{part}_uncorrectable>N/A")

    assert explain(text, name="").verdict == verdict


@pytest.mark.parametrize("word", ["h100-80gb", "l40s"])
@pytest.mark.parametrize(
    "title", ["idle :: nvidia-smi (def", "idle :: query (-q)", "idle :: query-gpu", "load :: query-gpu", "load :: query (-q)"]
)
def test_section_when_it_is_healthy_then_each_form_says_so(word, title):
    command, text = section(word, title)

    assert explain(text, name="", command=command).verdict == "healthy"
    assert explain(text, name="").verdict == "healthy"


@pytest.mark.parametrize(
    ("word", "verdict", "instances"), [("h100-80gb", "healthy", 0), ("h100-mig", "unknown", 4), ("l40s", "healthy", 0)]
)
def test_capture_when_all_sections_are_read_then_one_gpu_with_what_each_found(word, verdict, instances):
    health = explain(capture(word), name="capture.json")

    (accelerator,) = health.accelerators
    assert (health.source, health.verdict) == ("nvidia-smi-capture", verdict)
    mig = [finding.what for finding in accelerator.findings if finding.code == "mig.on"]
    assert [f"{instances} instances" in what for what in mig] == [True] * bool(instances)
    assert "nvlink.inactive" not in codes(accelerator)


def test_capture_when_it_is_text_with_titles_then_it_is_read_like_the_json():
    rule = "#" * 80
    sections = json.loads(capture("l40s"))["sections"]
    parts = [f"{rule}\n# {name}\n# $ {entry['command']}\n{rule}\n{entry['stdout']}\n\n" for name, entry in sections.items()]
    text = f"{rule}\n# a capture\n{rule}\nos: linux\n\n" + "".join(parts)
    health = explain(text, name="capture.txt")

    assert (health.source, health.verdict, len(health.accelerators)) == ("nvidia-smi-capture", "healthy", 1)
    cut = explain(text[: text.index("load :: query (-q)") + 2500], name="")
    assert cut.verdict == "unknown"


def test_capture_when_only_the_load_shows_a_fault_then_it_is_found():
    text = json.loads(capture("h100-80gb"))
    load = next(name for name in text["sections"] if name.startswith("load :: query (-q)"))
    entry = text["sections"][load]
    entry["stdout"] = planted(
        entry["stdout"], "GPU Recovery Action                                : None", "GPU Recovery Action : Reset"
    )
    health = explain(json.dumps(text), name="")

    assert (health.verdict, health.action) == ("failed", "reset_gpu")


@pytest.mark.parametrize(
    ("old", "new", "code", "action"),
    [
        (": Completed", ": In Progress", "fabric.not_ready", "restart_service"),
        (": Success", ": Failure", "fabric.failed", "restart_service"),
        (
            "SRAM Threshold Exceeded                    : No",
            "SRAM Threshold Exceeded : Yes",
            "ecc.sram_threshold",
            "drain_and_replace",
        ),
        (
            "Remapping Failure Occurred                     : No",
            "Remapping Failure Occurred : Yes",
            "rows.remap_failed",
            "drain_and_replace",
        ),
        (
            "GPU Recovery Action                                : None",
            "GPU Recovery Action : Node Reboot",
            "device.recovery",
            "reboot_node",
        ),
        (
            "Channel Repair Pending                         : No",
            "Channel Repair Pending : Yes",
            "memory.repair_pending",
            "reset_gpu",
        ),
    ],
)
def test_query_when_one_value_of_a_healthy_gpu_is_bad_then_the_finding_names_it(old, new, code, action):
    text = section("h100-80gb", "idle :: query (-q)")[1]
    (accelerator,) = explain(planted(text, old, new), name="").accelerators

    assert code in codes(accelerator)
    assert (accelerator.verdict, accelerator.action) == ("failed", action)


def test_query_when_only_a_part_was_asked_for_then_the_rest_is_not_missing():
    text = "==============NVSMI LOG==============\n\nDriver Version : 590.1\nAttached GPUs : 1\nGPU 00000000:01:00.0\n"
    text += "    Temperature\n        GPU Current Temp : 41 C\n"

    assert explain(text, name="", command="nvidia-smi -q -d TEMPERATURE").verdict == "healthy"
    assert explain(text, name="").verdict == "unknown"


TABLE = """\
Tue Jul 14 08:12:38 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA RTX 4000 Ada Gene...    On  |   00000000:C9:00.0 Off |                  Off |
| 30%   33C    P8              4W /  130W |       1MiB /  20475MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA RTX 4000 Ada Gene...    On  |   00000000:CC:00.0 Off |                  Off |
|ERR!   68C    P2             99W /  130W |       1MiB /  20475MiB |     93%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
+-----------------------------------------------------------------------------------------+
"""
OLD_TABLE = """\
Sat Apr 19 10:08:49 2014
+------------------------------------------------------+
| NVIDIA-SMI 5.325.15   Driver Version: 325.15         |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  GeForce GTX TITAN   Off  | 0000:03:00.0     N/A |                  N/A |
| 30%   44C  N/A     N/A /  N/A |       14MB /  6143MB |     N/A      Default |
+-------------------------------+----------------------+----------------------+
| Compute processes:                                               GPU Memory |
"""
WINDOWS = TABLE.replace("On  |   00000000:C9", "WDDM |  00000000:C9").replace("ERR!", "30%")


def test_table_when_one_gpu_has_an_error_word_then_it_alone_failed():
    # shape of utkuozdemir/nvidia_gpu_exporter#393
    health = explain(TABLE, name="", command="nvidia-smi")

    assert [(one.index, one.pci, one.verdict) for one in health.accelerators] == [
        (0, "00000000:C9:00.0", "healthy"),
        (1, "00000000:CC:00.0", "failed"),
    ]
    assert codes(health.accelerators[1]) == ["device.reading_error"]
    assert health.action == "reset_gpu"


def test_table_when_it_is_old_or_of_windows_then_it_is_read_all_the_same():
    old, windows = explain(OLD_TABLE, name=""), explain(WINDOWS, name="")

    assert [one.verdict for one in old.accelerators] == ["healthy"]
    assert any("utilisation_ratio" in text for text in old.unknown)
    assert [one.verdict for one in windows.accelerators] == ["healthy", "healthy"]


def test_table_when_a_gpu_or_its_end_is_missing_then_the_node_is_unknown():
    lines = TABLE.replace("ERR!", "30%").splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("|   0"))

    assert explain("\n".join(lines[:first] + lines[first + 4 :]), name="").verdict == "unknown"
    assert explain("\n".join(line for line in lines if "rocesses" not in line), name="").verdict == "unknown"


def test_table_when_mig_is_on_then_errors_come_from_its_own_table():
    command, text = section("h100-mig", "idle :: nvidia-smi (def")
    bad = text.replace("| 32      0 |", "| 32      2 |")

    assert explain(text, name="", command=command).verdict == "healthy"
    assert explain(bad, name="").accelerators[0].findings[0].code == "ecc.volatile_uncorrectable"
    assert (
        explain(
            "\n".join(
                line
                for line in text.splitlines()
                if "40448MiB" not in line and "9984MiB" not in line and "20096MiB" not in line
            ),
            name="",
        ).verdict
        == "unknown"
    )


@needs_shared
def test_nvlink_status_when_all_links_of_eight_gpus_are_up_then_healthy():
    text = (SHARED / "kernel-logs" / "gpud_nvidia-smi.nvlink.status.a100").read_text(encoding="utf-8")
    health = explain(text, name="")

    assert (health.verdict, len(health.accelerators)) == ("healthy", 8)


def test_document_when_shown_then_it_has_the_agreed_keys():
    shown = document(explain(planted(xml("a10g"), "<remapped_row_failure>No", "<remapped_row_failure>Yes"), name=""))

    assert set(shown) == {"source", "accelerators", "node", "unknown"}
    assert set(shown["accelerators"][0]) == {"index", "pci", "uuid", "verdict", "action", "findings"}
    assert set(shown["accelerators"][0]["findings"][0]) == {"code", "what", "action", "evidence", "source"}
    assert set(shown["node"]) == {"verdict", "action", "reasons"}
    assert json.loads(json.dumps(shown)) == shown
