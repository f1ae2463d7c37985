from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.health.documents import device, document

from hostler.health.catalog import LIMITS
from hostler.health.first import judge
from hostler.model.enums import Verdict
from hostler.recipes.probe import probe

XMLS = Path(__file__).parents[1] / "data" / "nvidia-smi"
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def verdict(*devices, count=None, accelerator="H100", **changes):
    return judge(document(*devices, **changes), accelerator=accelerator, accelerator_count=count or len(devices))


def test_judge_when_all_is_well_then_healthy_without_reasons():
    report = judge(document(device(0), device(1)), accelerator="H100", accelerator_count=2, now=NOW)

    assert (report.verdict, report.reasons) == (Verdict.HEALTHY, ())


@pytest.mark.parametrize(
    ("changes", "expected", "words"),
    [
        ({"ecc_volatile_uncorrectable_count": 1}, Verdict.FAILED, "1 volatile uncorrectable ECC errors, limit 0"),
        ({"is_remap_pending": True}, Verdict.FAILED, "remap is pending"),
        ({"has_remap_failed": True}, Verdict.FAILED, "remap has failed: replace"),
        ({"remapped_uncorrectable_count": 513}, Verdict.FAILED, "513 rows remapped after uncorrectable errors, limit 512"),
        ({"is_sram_threshold_exceeded": True}, Verdict.FAILED, "SRAM error threshold exceeded"),
        ({"is_sram_threshold_exceeded": None, "ecc_aggregate_uncorrectable_count": 3}, Verdict.DEGRADED, "3 uncorrectable"),
        ({"temperature_c": 85}, Verdict.DEGRADED, "85 C, limit 85 C"),
        ({"temperature_c": 89, "temperature_slowdown_c": 89}, Verdict.FAILED, "89 C, slows down at 89 C"),
        ({"temperature_margin_c": -3}, Verdict.FAILED, "thermal margin -3 C, slows down below -2 C"),
        ({"throttle_mask": 0x40}, Verdict.DEGRADED, "hardware thermal slowdown"),
        ({"throttle_mask": 0x80 | 0x4}, Verdict.DEGRADED, "hardware power brake"),
        ({"throttle_mask": 0x08}, Verdict.DEGRADED, "hardware slowdown"),
        ({"throttle_mask": 0x20}, Verdict.DEGRADED, "software thermal slowdown"),
        ({"pcie_width": 8}, Verdict.DEGRADED, "PCIe width x8 while busy, x16 expected"),
        ({"nvlink_active_count": 17}, Verdict.FAILED, "17 of 18 NVLinks active"),
        ({"nvlink_active_count": 0, "nvlink_count": 0}, Verdict.FAILED, "no NVLink found"),
        ({"recovery_action": "Reset"}, Verdict.FAILED, "asks for recovery: Reset"),
        ({"is_persistent": False}, Verdict.DEGRADED, "persistence mode is off"),
        ({"is_ecc_enabled": False, "ecc_volatile_uncorrectable_count": None}, Verdict.DEGRADED, "ECC is off"),
        ({"is_ecc_pending": False}, Verdict.DEGRADED, "ECC mode changes"),
        ({"name": "NVIDIA H200"}, Verdict.FAILED, "is a NVIDIA H200, H100 was bought"),
        ({"error": "GPU is lost"}, Verdict.FAILED, "GPU is lost"),
    ],
)
def test_judge_when_one_reading_is_bad_then_the_reason_names_accelerator_reading_and_limit(changes, expected, words):
    report = verdict(device(0), device(1, **changes))

    assert report.verdict is expected
    (reason,) = report.reasons
    assert reason.startswith("accelerator 1 (00000000:01:09.0): ")
    assert words in reason


@pytest.mark.parametrize("mask", [0x0, 0x1, 0x2, 0x4, 0x10, 0x100, 0x1 | 0x4 | 0x10])
def test_judge_when_only_benign_throttle_bits_are_set_then_healthy(mask):
    assert verdict(device(throttle_mask=mask)).verdict is Verdict.HEALTHY


def test_judge_when_an_idle_link_is_downshifted_then_healthy():
    assert verdict(device(pcie_width=8, utilisation_ratio=0.0)).verdict is Verdict.HEALTHY
    assert verdict(device(pcie_width=8, utilisation_ratio=None)).verdict is Verdict.HEALTHY


@pytest.mark.parametrize(
    "field", ["name", "temperature_c", "throttle_mask", "ecc_volatile_uncorrectable_count", "is_remap_pending"]
)
def test_judge_when_a_needed_reading_is_missing_then_unknown_with_the_probes_reason(field):
    report = verdict(device(**{field: None, "missing": {field: "Unknown Error"}}))

    assert report.verdict is Verdict.UNKNOWN
    assert f"{field} could not be read: Unknown Error" in report.reasons[0]


def test_judge_when_failed_and_unknown_meet_then_failed_comes_first():
    report = verdict(device(0, temperature_c=None), device(1, has_remap_failed=True), device(2, temperature_c=86))

    assert report.verdict is Verdict.FAILED
    assert [reason[:13] for reason in report.reasons] == ["accelerator 1", "accelerator 0", "accelerator 2"]


@pytest.mark.parametrize(("found", "expected"), [(7, 8), (1, 8), (9, 8)])
def test_judge_when_the_count_is_wrong_then_failed(found, expected):
    report = verdict(*(device(index) for index in range(found)), count=expected)

    assert report.verdict is Verdict.FAILED
    assert f"{found} accelerators, {expected} expected" in report.reasons


def test_judge_when_mig_hides_nvlink_and_rows_then_links_do_not_apply_and_rows_are_unknown():
    entry = device(is_mig_enabled=True, nvlink_active_count=None, nvlink_count=None, utilisation_ratio=None)
    assert verdict(entry, device(1)).verdict is Verdict.HEALTHY

    hidden = {**entry, "is_remap_pending": None, "has_remap_failed": None, "missing": {"is_remap_pending": "N/A"}}
    assert verdict(hidden, device(1)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        # lyulyul/shine-cluster#30, tinygrad/open-gpu-kernel-modules#47, lyulyul/shine-cluster#50, then words that prove nothing
        ("nvidia-smi: Failed to initialize NVML: Driver/library version mismatch (exit status 18)", Verdict.FAILED),
        ("nvml: pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.", Verdict.FAILED),
        ("nvidia-smi: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", Verdict.FAILED),
        ("nvml: pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded", Verdict.FAILED),
        ("nvidia-smi: No such file or directory", Verdict.FAILED),
        ("nvidia-smi: no answer in 8.0 s", Verdict.UNKNOWN),
        ("nvidia-smi: printed nothing", Verdict.UNKNOWN),
        ("nvidia-smi: Segmentation fault", Verdict.UNKNOWN),
    ],
)
def test_judge_when_no_accelerator_is_told_then_only_proof_makes_it_failed(error, expected):
    report = verdict(count=8, source="none", driver_version=None, errors=[error])

    assert report.verdict is expected
    assert error in report.reasons[0]


def test_judge_when_the_only_one_listed_is_lost_then_the_others_are_not_called_absent():
    report = verdict({**device(), "index": None, "error": "GPU is lost. Reboot the system to recover this GPU"}, count=8)

    assert report.verdict is Verdict.FAILED
    assert "1 of 8 accelerators lost; the others are not listed" in report.reasons


def xid(code, line="", device="0000:01:00"):
    return {"code": code, "pci_bus_id": device, "line": line}


@pytest.mark.parametrize("code", [62, 64, 79, 95, 109, 119, 120, 140, 143])
def test_judge_when_an_xid_asks_for_reset_or_more_then_failed(code):
    report = verdict(device(), xids=[xid(code), xid(code)])

    assert report.verdict is Verdict.FAILED
    assert len(report.reasons) == 1
    assert f"XID {code} in this boot" in report.reasons[0]


@pytest.mark.parametrize("code", [13, 31, 43, 45, 63, 68, 69, 80, 92, 94])
def test_judge_when_an_xid_asks_for_less_then_healthy(code):
    assert verdict(device(), xids=[xid(code)]).verdict is Verdict.HEALTHY


def test_judge_when_the_driver_names_a_recovery_then_its_word_goes_over_the_table():
    reset = xid(154, "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    done = xid(154, "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")

    asked = verdict(device(), xids=[xid(119), reset])
    assert asked.verdict is Verdict.FAILED
    assert asked.reasons == ("0000:01:00: XID 154: the driver asks for GPU Reset Required",)
    assert verdict(device(), xids=[xid(119), reset, done]).verdict is Verdict.HEALTHY
    assert verdict(device(), xids=[xid(119, device="0000:02:00"), done]).verdict is Verdict.FAILED
    assert verdict(device(), xids=[xid(154, "NVRM: Xid (PCI:0000:01:00): 154 (")]).verdict is Verdict.DEGRADED


def test_judge_when_the_kernel_log_is_closed_then_unknown():
    report = verdict(device(), kernel_log={"is_readable": False, "reason": "dmesg: Operation not permitted"})

    assert (report.verdict, report.reasons) == (
        Verdict.UNKNOWN,
        ("the kernel log could not be read: dmesg: Operation not permitted",),
    )


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [(0, Verdict.HEALTHY), (600, Verdict.HEALTHY), (601, Verdict.UNKNOWN), (-601, Verdict.UNKNOWN)],
)
def test_judge_when_the_document_is_old_or_from_the_future_then_unknown(age_s, expected):
    made = (NOW - timedelta(seconds=age_s)).isoformat()
    report = judge(document(device(), wall_clock_at=made), accelerator="H100", accelerator_count=1, now=NOW)
    assert report.verdict is expected


def test_judge_when_the_asker_says_when_it_came_then_the_nodes_wrong_clock_does_not_matter():
    stamped = document(device(), wall_clock_at="2025-01-01T00:00:00Z", received_at=NOW.isoformat())

    assert judge(stamped, accelerator="H100", accelerator_count=1, now=NOW).verdict is Verdict.HEALTHY


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"version": 2},
        document(device(), version=None),
        document({"index": 0}),
        document(device(temperature_c="hot")),
        document(device(throttle_mask="0x40")),
        document(device(), xids=[{"code": "x"}]),
        document(device(), kernel_log=None),
        {**document(device()), "accelerators": "none"},
    ],
)
def test_judge_when_the_document_is_malformed_then_unknown(broken):
    assert judge(broken, accelerator="H100", accelerator_count=1).verdict is Verdict.UNKNOWN


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_judge_when_given_any_json_then_it_is_unknown_and_never_an_error(value):
    found = judge({"version": 1, "accelerators": value, "errors": []}, accelerator="H100", accelerator_count=1)
    assert found.verdict is not Verdict.HEALTHY


@pytest.mark.parametrize(("xml", "accelerator"), [("tesla-t4", "T4"), ("a10g", "A10G")])
def test_judge_when_a_real_idle_capture_is_judged_then_only_persistence_is_missed(xml, accelerator):
    read = probe.parse_xml((XMLS / f"{xml}.xml").read_text())
    report = judge(document(**read), accelerator=accelerator, accelerator_count=1)

    assert report.verdict is Verdict.DEGRADED
    assert [reason.split(": ")[-1] for reason in report.reasons] == ["persistence mode is off"]


def test_judge_when_a_real_mig_capture_is_judged_then_its_hidden_rows_make_it_unknown():
    read = probe.parse_xml((XMLS / "a100-sxm4-v12.xml").read_text())
    report = judge(document(**read), accelerator="A100-80GB", accelerator_count=1)

    assert report.verdict is Verdict.UNKNOWN
    assert any("is_remap_pending could not be read: N/A" in reason for reason in report.reasons)


def test_limits_when_listed_then_each_has_source_and_date():
    assert all(limit.source and limit.read_on for limit in LIMITS.values())
