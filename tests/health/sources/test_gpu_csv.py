"""nvidia-smi's CSV: with and without heading and units, with error texts between the rows."""

import pytest
from tests.health.sources.samples import section, with_cells, without_columns

from hostler.health.sources import explain

ASKED = "nvidia-smi --query-gpu=index,uuid,temperature.gpu,utilization.gpu,ecc.errors.uncorrected.volatile.total --format=csv,noheader"
NOUNITS = ASKED + ",nounits"


def verdicts(text, command=None):
    return [(one.index, one.verdict) for one in explain(text, name="", command=command).accelerators]


@pytest.mark.parametrize(
    ("cells", "code", "verdict", "action"),
    [
        ({"gpu_recovery_action": "Reset"}, "device.recovery", "failed", "reset_gpu"),
        ({"gpu_recovery_action": "Drain and Reset"}, "device.recovery", "failed", "reset_gpu"),
        ({"gpu_recovery_action": "Drain P2P"}, "device.recovery", "failed", "drain_and_diag"),
        ({"gpu_recovery_action": "A new word"}, "device.recovery", "failed", "drain_and_diag"),
        ({"remapped_rows__failure": "Yes"}, "rows.remap_failed", "failed", "drain_and_replace"),
        ({"remapped_rows__pending": "Yes"}, "rows.remap_pending", "failed", "reset_gpu"),
        ({"ecc__errors__uncorrected__volatile__total": "4"}, "ecc.volatile_uncorrectable", "failed", "reset_gpu"),
        (
            {"ecc__errors__uncorrected__aggregate__sram__thresholdExceeded": "Yes"},
            "ecc.sram_threshold",
            "failed",
            "drain_and_replace",
        ),
        ({"fabric__state": "In Progress"}, "fabric.not_ready", "failed", "restart_service"),
        ({"fabric__health__bandwidth": "Degraded"}, "fabric.unhealthy", "degraded", "drain_and_diag"),
        ({"clocks_event_reasons__active": "0x0000000000000048"}, "throttle.hardware_thermal", "degraded", "record"),
        ({"inforom__checksum_validation": "invalid"}, "device.inforom", "degraded", "reset_gpu"),
        ({"temperature__gpu": "91"}, "thermal.warning", "degraded", "record"),
        ({"temperature__gpu__tlimit": "-4"}, "thermal.margin", "failed", "drain_and_diag"),
        ({"pcie__link__width__current": "4"}, "pcie.width", "degraded", "drain_and_diag"),
        ({"pcie__link__gen__current": "1"}, "pcie.generation", "degraded", "drain_and_diag"),
        ({"temperature__gpu": "[GPU is lost]"}, "device.lost", "failed", "reboot_node"),
        ({"power__draw": "[Unknown Error]"}, "device.unreachable", "failed", "reboot_node"),
        ({"temperature__gpu": "ERR!"}, "device.reading_error", "failed", "reset_gpu"),
        ({"temperature__gpu": "[GPU requires reset]"}, "driver.reset_required", "failed", "reset_gpu"),
        ({"temperature__gpu": "[Not Supported]"}, "reading.temperature_c", "unknown", "record"),
        ({"remapped_rows__pending": "[N/A]"}, "reading.is_remap_pending", "unknown", "record"),
    ],
)
def test_csv_when_one_cell_of_a_busy_gpu_is_bad_then_the_finding_names_it(cells, code, verdict, action):
    text = section("h100-80gb", "load :: query-gpu")[1]
    (accelerator,) = explain(with_cells(text, **cells), name="").accelerators

    assert code in [finding.code for finding in accelerator.findings]
    assert (accelerator.verdict, accelerator.action) == (verdict, action)


def test_csv_when_a_link_is_slow_but_idle_then_healthy():
    text = section("h100-80gb", "idle :: query-gpu")[1]

    assert explain(with_cells(text, pcie__link__gen__current="1"), name="").verdict == "healthy"


@pytest.mark.parametrize("mask", ["0x0000000000000001", "0x0000000000000004", "0x0000000000000115"])
def test_csv_when_only_benign_throttle_bits_are_set_then_healthy(mask):
    text = section("h100-80gb", "load :: query-gpu")[1]

    assert explain(with_cells(text, clocks_event_reasons__active=mask), name="").verdict == "healthy"


def test_csv_when_throttle_bits_stand_in_own_columns_then_all_bad_ones_are_needed():
    text = without_columns(section("h100-80gb", "load :: query-gpu")[1], "clocks_event_reasons.active")

    assert explain(text, name="").verdict == "healthy"
    assert explain(without_columns(text, "clocks_event_reasons.hw_thermal_slowdown"), name="").verdict == "unknown"
    assert explain(with_cells(text, clocks_event_reasons__hw_slowdown="Active"), name="").verdict == "degraded"


@pytest.mark.parametrize("command", [ASKED, NOUNITS])
def test_csv_when_it_has_no_heading_then_the_command_names_the_columns(command):
    rows = "0, GPU-a, 41, 0 %, 0\n1, GPU-b, 41, 0 %, 3\n2, GPU-c, 41, [N/A], 0\n"
    health = explain(rows, name="", command=command)

    assert [(one.index, one.uuid, one.verdict) for one in health.accelerators] == [
        (0, "GPU-a", "healthy"),
        (1, "GPU-b", "failed"),
        (2, "GPU-c", "healthy"),
    ]
    assert "accelerator 2: utilisation_ratio: [N/A]" in health.unknown


def test_csv_when_nobody_names_the_columns_then_unknown():
    health = explain("41, 0, 0\n", name="", kind="nvidia-smi-csv")

    assert health.verdict == "unknown"
    assert "columns are not named" in health.reasons[0]


def test_csv_when_a_row_is_cut_then_it_alone_is_unknown():
    assert verdicts("0, GPU-a, 41, 0 %, 0\n1, GPU-b, 4", ASKED) == [(0, "healthy"), (None, "unknown")] or verdicts(
        "0, GPU-a, 41, 0 %, 0\n1, GPU-b, 4", ASKED
    ) == [(0, "healthy"), (1, "unknown")]


def test_csv_when_error_texts_stand_between_rows_then_each_gpu_has_its_own_verdict():
    rows = (
        "0, GPU-a, 41, 0 %, 0\n"
        "Unable to determine the device handle for GPU0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
        "2, GPU-c, 41, 0 %, 0\n"
        "Unable to determine the device handle for GPU0000:04:00.0: Unknown Error\n"
        "[Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error]\n"
    )
    health = explain(rows, name="", command=ASKED)

    assert sorted((one.pci or "", one.verdict) for one in health.accelerators) == [
        ("", "healthy"),
        ("", "healthy"),
        ("0000:02:00.0", "failed"),
        ("0000:04:00.0", "failed"),
    ]


def test_csv_when_a_gpu_is_missing_from_the_row_of_indexes_then_the_node_is_unknown():
    rows = "0, GPU-a, 41, 0 %, 0\n2, GPU-c, 41, 0 %, 0\n"

    assert explain(rows, name="", command=ASKED).verdict == "unknown"
    assert explain(rows, name="", command=ASKED + " -i 0,2").verdict == "healthy"


def test_csv_when_the_count_is_higher_than_the_rows_then_the_node_is_unknown():
    text = with_cells(section("h100-80gb", "idle :: query-gpu")[1], count="8")

    assert explain(text, name="").verdict == "unknown"


def test_csv_when_it_loops_then_samples_of_one_gpu_are_one_gpu():
    rows = "0, GPU-a, 41, 0 %, 0\n1, GPU-b, 41, 0 %, 0\n0, GPU-a, 41, 0 %, 2\n1, GPU-b, 41, 0 %, 0\n"

    assert verdicts(rows, ASKED + " -l 1") == [(0, "failed"), (1, "healthy")]


def test_csv_when_driver_versions_differ_then_the_node_says_so():
    rows = "index, driver_version, temperature.gpu\n0, 590.48.01, 41\n1, 590.44.01, 41\n"
    health = explain(rows, name="")

    assert (health.verdict, [finding.code for finding in health.findings]) == ("degraded", ["driver.mixed_versions"])


def test_csv_when_nothing_was_asked_that_tells_of_health_then_unknown():
    assert explain("index, name\n0, NVIDIA A100\n", name="").verdict == "unknown"
    assert explain(section("l40s", "load :: query-compute-apps")[1], name="").verdict == "unknown"


@pytest.mark.parametrize("words", ["Failed to initialize NVML: Driver/library version mismatch", "No devices were found"])
def test_csv_when_the_tool_fails_in_place_of_rows_then_the_node_failed(words):
    health = explain(words, name="", command=ASKED)

    assert (health.verdict, health.action, health.accelerators) == ("failed", "reboot_node", ())
