import json

import pytest
from tests.health.shared_captures import FOLDER, capture, needs_captures

from hostler.health.sources import explain
from hostler.model.enums import HealthAction, Verdict

CASES = json.loads(capture("dcgmi/gcm_dcgmi_cases.json")) if FOLDER else []
WORDS = {"healthy": Verdict.HEALTHY, "unhealthy": Verdict.FAILED, "degraded": Verdict.DEGRADED, "unknown": Verdict.UNKNOWN}


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_dcgmi_when_labelled_then_the_verdict_is_right(case):
    is_links = "nvlink" in case["name"]
    command = "dcgmi nvlink -e -j" if is_links else "dcgmi diag -r 1 -j"
    health = explain(case["stdout"], name="", command=command, exit_code=case["exit_code"])
    wanted = WORDS.get(case["right_verdict"].split(":")[0].split(" ")[0])
    if wanted is None:
        wanted = Verdict.FAILED if "fail_output" in case["name"] else Verdict.HEALTHY
    assert health.verdict is wanted


def diag(*results, version="DCGM Diagnostic", **top):
    tests = [{"name": name, "results": list(parts)} for name, parts in results]
    return json.dumps({version: {"test_categories": [{"category": "Hardware", "tests": tests}], **top}})


def explained(text, exit_code=None):
    return explain(text, name="", command="dcgmi diag -r 3 -j", exit_code=exit_code)


def test_diag_when_one_gpu_fails_in_the_new_form_then_that_gpu_alone():
    warning = {"error_id": 52, "error_category": 1, "error_severity": 2, "warning": "GPU 1 memory miscompare"}
    text = diag(
        (
            "memory",
            [
                {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass"},
                {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 1, "status": "Fail", "warnings": [warning]},
            ],
        )
    )
    health = explained(text, 226)
    assert [(one.index, one.verdict) for one in health.accelerators] == [(0, Verdict.HEALTHY), (1, Verdict.FAILED)]
    assert health.action is HealthAction.DRAIN_AND_REPLACE
    assert "exit status 226" in health.unknown[0]


def test_diag_when_results_name_gpu_ids_then_each_is_read():
    text = diag(("PCIe", [{"gpu_ids": "0,2", "status": "Fail", "warnings": ["PCIe replays"]}]), version="DCGM GPU Diagnostic")
    assert [one.index for one in explained(text).accelerators] == [0, 2]


def test_diag_when_only_the_summary_fails_then_failed():
    body = {"name": "software", "results": [{"status": "Pass"}], "test_summary": {"status": "Fail"}}
    text = json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [body]}]}})
    assert explained(text).verdict is Verdict.FAILED


def test_diag_when_a_test_could_not_run_then_unknown_and_no_fault():
    warning = {"error_id": 27, "warning": "error getting a field"}
    text = diag(("memory", [{"entity_group": "GPU", "entity_id": 0, "status": "Fail", "warnings": [warning]}]))
    assert explained(text).verdict is Verdict.UNKNOWN


def test_diag_when_all_are_skipped_then_unknown():
    assert explained(diag(("memory", [{"status": "Skip"}]), ("pcie", [{"status": "Not Run"}]))).verdict is Verdict.UNKNOWN


def test_diag_when_the_runtime_broke_then_unknown_even_with_passes():
    text = diag(("memory", [{"status": "Pass"}]), runtime_error="the hostengine went away")
    assert explained(text).verdict is Verdict.UNKNOWN


def test_diag_when_words_stand_around_the_json_then_it_is_read():
    assert (
        explained("Successfully ran diagnostic for group.\n" + diag(("memory", [{"status": "Pass"}]))).verdict
        is Verdict.HEALTHY
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "{",
        '{"DCGM Diagnostic": {}}',
        '{"DCGM Diagnostic": {"test_categories": [{}]}}',
        '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory"}]}]}}',
        '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory", "results": [{"status": "Wonderful"}]}]}]}}',
        '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory", "results": [{}]}]}]}}',
        "Error: unable to establish a connection to the specified host: localhost",
        "dcgmi: command not found",
    ],
)
@pytest.mark.parametrize("exit_code", [0, 1, 127, 226])
def test_diag_when_malformed_then_unknown_whatever_the_exit_status(text, exit_code):
    assert explained(text, exit_code).verdict is Verdict.UNKNOWN


def test_diag_when_a_test_passes_with_an_error_then_the_error_speaks():
    warning = {"error_id": 53, "warning": "could not allocate enough memory"}
    text = diag(("memory", [{"entity_group": "GPU", "entity_id": 0, "status": "Pass", "warnings": [warning]}]))
    assert explained(text).verdict is not Verdict.HEALTHY


@pytest.mark.parametrize(("number", "verdict"), [(45, Verdict.DEGRADED), (31, Verdict.DEGRADED), (79, Verdict.FAILED)])
def test_diag_when_an_xid_came_in_its_time_then_the_number_decides(number, verdict):
    warning = {"error_id": 101, "warning": f"Detected XID {number} for GPU 0 Please consult the documentation."}
    text = diag(("pcie", [{"entity_group": "GPU", "entity_id": 0, "status": "Fail", "warnings": [warning]}]))
    assert explained(text).verdict is verdict


NEW_TABLE = """+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Deployment  --------+------------------------------------------------|
| software                  | Pass                                           |
|                           | GPU0: Pass                                     |
|                           | GPU1: Pass                                     |
+-----  Hardware  ----------+------------------------------------------------+
| memory                    | Fail                                           |
|                           | GPU0: Pass                                     |
|                           | GPU1: Fail                                     |
| Warning: GPU1             | GPU 1 memory miscompare at address 0x12        |
+---------------------------+------------------------------------------------+
"""


def test_diag_when_the_newest_table_names_gpus_then_each_is_read():
    health = explain(NEW_TABLE, name="")
    assert [(one.index, one.verdict) for one in health.accelerators] == [(0, Verdict.HEALTHY), (1, Verdict.FAILED)]
    assert health.action is HealthAction.DRAIN_AND_REPLACE


TABLE = """Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 3.3.5                                          |
| Driver Version Detected   | 550.54.15                                      |
| GPU Device IDs Detected   | 20b5,20b5,20b5,20b5                            |
|-----  Deployment  --------+------------------------------------------------|
| Denylist                  | Pass                                           |
| NVML Library              | Pass                                           |
| Persistence Mode          | Pass                                           |
+-----  Integration  -------+------------------------------------------------+
| PCIe                      | {pcie}|
{more}+-----  Hardware  ----------+------------------------------------------------+
| GPU Memory                | Pass - All                                     |
+-----  Stress  ------------+------------------------------------------------+
| Targeted Power            | Skip - All                                     |
+---------------------------+------------------------------------------------+
"""


def test_diag_when_a_table_passes_then_healthy():
    assert explain(TABLE.format(pcie="Pass - All" + " " * 37, more=""), name="").verdict is Verdict.HEALTHY


def test_diag_when_a_table_names_a_gpu_then_that_gpu_fails_with_its_warning():
    more = (
        "|                           | Pass - GPUs: 0, 2, 3                           |\n"
        "| Warning                   | GPU 1 Detected 12 PCIe replays per minute for  |\n"
        "|                           | GPU 1 which is too many.                       |\n"
    )
    health = explain(TABLE.format(pcie="Fail - GPU: 1" + " " * 34, more=more), name="")
    failed = [one for one in health.accelerators if one.verdict is Verdict.FAILED]
    assert [one.index for one in failed] == [1]
    assert {one.index for one in health.accelerators} == {0, 1, 2, 3}
    assert health.action is HealthAction.DRAIN_AND_DIAG


def test_diag_when_a_table_fails_for_all_then_the_node_fails():
    assert explain(TABLE.format(pcie="Fail - All" + " " * 37, more=""), name="").verdict is Verdict.FAILED


OLD_HEALTH = """Health Monitor Report
+------------------+---------------------------------------------------------+
| Overall Health: {overall}
+==================+=========================================================+
| GPU ID: 0        | Warning                                                 |
|                  | PCIe system: Warning - Detected more than 8 PCIe        |
|                  | replays per minute for GPU 0: 13                        |
+------------------+---------------------------------------------------------+
| GPU ID: 1        | Failure                                                 |
|                  | InfoROM system: Failure - A corrupt InfoROM has been    |
|                  | detected in GPU 1.                                      |
+------------------+---------------------------------------------------------+
"""


def test_health_when_an_old_table_then_each_system_of_each_gpu_is_read():
    health = explain(OLD_HEALTH.format(overall="Failure"), name="")
    assert health.source == "dcgmi-health"
    assert [(one.index, one.verdict) for one in health.accelerators] == [(0, Verdict.DEGRADED), (1, Verdict.FAILED)]
    assert [finding.code for finding in health.accelerators[1].findings] == ["dcgm.health.inforom"]
    assert [one.action for one in health.accelerators] == [HealthAction.DRAIN_AND_DIAG, HealthAction.RESET_GPU]


@pytest.mark.parametrize(
    ("value", "verdict"),
    [("Healthy", Verdict.HEALTHY), ("Warning", Verdict.DEGRADED), ("Failure", Verdict.FAILED), ("Purple", Verdict.UNKNOWN)],
)
def test_health_when_only_the_overall_word_is_told_then_it_decides(value, verdict):
    table = f"| Health Monitor Report |\n+====+====+\n| Overall Health                  | {value}            |\n"
    assert explain(table, name="").verdict is verdict
    document = {"body": {"Overall Health": {"value": value}}, "header": ["Health Monitor Report"]}
    assert explain(json.dumps(document), name="", command="dcgmi health -c -j").verdict is verdict


def test_health_when_json_names_a_gpu_then_it_is_that_gpu():
    errors = {
        "children": {"Memory system": {"children": {"Error": {"value": "a pending row remap in GPU 3"}}, "value": "Failure"}}
    }
    gpu = {"children": {"3": {"children": {"Errors": errors}, "value": "Failure"}}}
    document = {"body": {"GPU": gpu, "Overall Health": {"value": "Failure"}}, "header": ["Health Monitor Report"]}
    health = explain(json.dumps(document), name="")
    assert [(one.index, one.verdict, one.action) for one in health.accelerators] == [
        (3, Verdict.FAILED, HealthAction.RESET_GPU)
    ]


def test_health_when_cut_before_its_overall_word_then_never_healthy():
    text = "Health Monitor Report\n+=====+\n| GPU ID: 0        | Healthy                                                 |\n"
    assert explain(text, name="", command="dcgmi health -c").verdict is Verdict.UNKNOWN


TREE = """+---------------------------+------------------------------------------------------------+
| Health Monitor Report                                                                  |
+===========================+============================================================+
| Overall Health            | Failure                                                    |
| {group:<25} |                                                            |
| -> 2                      | Failure                                                    |
|    -> Errors              |                                                            |
|       -> Memory system    | Failure                                                    |
|                           | GPU 2 had uncorrectable memory errors and row remapping    |
|                           | failed. Run a field diagnostic on the GPU.                 |
+---------------------------+------------------------------------------------------------+
"""


def test_health_when_a_tree_names_a_gpu_then_its_system_and_reason_are_read():
    health = explain(TREE.format(group="GPU"), name="")
    assert [(one.index, one.verdict, one.action) for one in health.accelerators] == [
        (2, Verdict.FAILED, HealthAction.DRAIN_AND_REPLACE)
    ]


def test_health_when_a_tree_names_a_switch_then_no_gpu_is_blamed():
    health = explain(TREE.format(group="NvSwitch"), name="")
    assert health.accelerators == ()
    assert health.verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("letters", "verdict"),
    [("U U U U", Verdict.HEALTHY), ("U D U U", Verdict.FAILED), ("X X X X", Verdict.DEGRADED), ("_ _ _ _", Verdict.HEALTHY)],
)
def test_link_status_when_letters_are_read_then_down_fails(letters, verdict):
    text = (
        f"|  NvLink Link Status  |\nGPUs:\n    gpuId 0:\n        {letters}\nNvSwitches:\n    No NvSwitches found.\n\n"
        "Key: Up=U, Down=D, Disabled=X, Not Supported=_"
    )
    assert explain(text, name="").verdict is verdict


SMI_ERRORS = """GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5269b708-678a-b1a8-60f0-c90406537486)
\t Link 0: Replay Errors: 0
\t Link 0: Recovery Errors: {recovery}
\t Link 0: CRC Errors: {crc}
"""


@pytest.mark.parametrize(
    ("recovery", "crc", "verdict"),
    [
        ("0", "0", Verdict.HEALTHY),
        ("1", "0", Verdict.FAILED),
        ("0", "7", Verdict.DEGRADED),
        ("what", "0", Verdict.UNKNOWN),
        ("N/A", "0", Verdict.HEALTHY),
    ],
)
def test_link_errors_when_read_from_nvidia_smi_then_recovery_is_a_fault(recovery, crc, verdict):
    health = explain(SMI_ERRORS.format(recovery=recovery, crc=crc), name="", command="nvidia-smi nvlink -e")
    assert health.verdict is verdict
    assert health.accelerators[0].uuid == "GPU-5269b708-678a-b1a8-60f0-c90406537486"
