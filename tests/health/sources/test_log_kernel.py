import json

import pytest
from tests.health.shared_captures import capture, needs_captures

from hostler.health.sources import explain
from hostler.model.enums import HealthAction, Verdict


@needs_captures
@pytest.mark.parametrize(
    ("name", "verdict", "action", "pcis"),
    [
        ("gpud_dmesg-with-xid-119.log", Verdict.FAILED, HealthAction.RESET_GPU, ["0000:9b:00"]),
        ("gpud_dmesg.decode.iso.log", Verdict.HEALTHY, HealthAction.RESTART_APP, []),
        ("gpud_kmsg.2.peermem.log", Verdict.HEALTHY, HealthAction.RECORD, []),
    ],
)
def test_log_when_a_real_one_then_judged_right(name, verdict, action, pcis):
    health = explain(capture(f"kernel-logs/{name}"), name=name)
    assert (health.source, health.verdict, health.action) == ("kernel-log", verdict, action)
    assert [one.pci for one in health.accelerators] == pcis


@needs_captures
def test_samples_of_syslog_when_read_then_disk_faults_and_xids_are_told_apart():
    disk, both, app = (explain(text, name="dmesg") for text in json.loads(capture("kernel-logs/gcm_syslog_samples.json")))
    assert (disk.verdict, disk.action) == (Verdict.DEGRADED, HealthAction.DRAIN_AND_DIAG)
    assert (both.verdict, both.action) == (Verdict.FAILED, HealthAction.RESET_GPU)
    assert (app.verdict, app.action) == (Verdict.HEALTHY, HealthAction.RESTART_APP)


@needs_captures
def test_fabric_log_when_a_switch_error_is_not_fatal_then_warn_and_do_not_drain():
    health = explain(capture("kernel-logs/gpud_fabricmanager.log"), name="fabricmanager.log")
    assert (health.source, health.verdict, health.action) == ("fabric-manager-log", Verdict.DEGRADED, HealthAction.RECORD)
    assert "port 61" in health.reasons[0]
    assert "12028" in health.reasons[0]


def xid_line(at, code, text="text"):
    return f"[{at:12.6f}] NVRM: Xid (PCI:0000:04:00): {code}, pid=7, name=a, {text}"


def test_log_when_quiet_then_healthy_and_when_empty_then_unknown():
    assert explain("[    1.000000] Linux version 6.8.0\n", name="dmesg").verdict is Verdict.HEALTHY
    assert explain("", name="dmesg", command="dmesg").verdict is Verdict.UNKNOWN
    refused = "dmesg: read kernel buffer failed: Operation not permitted"
    assert explain(refused, name="", command="dmesg", exit_code=1).verdict is Verdict.UNKNOWN


def test_log_when_154_speaks_then_it_overrides_the_table():
    reset = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    health = explain("\n".join([xid_line(10, 79), xid_line(11, 154, reset)]), name="")
    assert (health.verdict, health.action) == (Verdict.FAILED, HealthAction.RESET_GPU)


def test_log_when_154_says_none_then_what_came_before_is_over_and_what_comes_later_counts():
    none = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    over = explain("\n".join([xid_line(10, 95), xid_line(11, 154, none)]), name="")
    assert over.verdict is Verdict.HEALTHY
    again = explain("\n".join([xid_line(10, 95), xid_line(11, 154, none), xid_line(5000, 79)]), name="")
    assert (again.verdict, again.action) == (Verdict.FAILED, HealthAction.REBOOT_NODE)


def test_log_when_154_cannot_be_read_then_it_overrides_nothing():
    health = explain("\n".join([xid_line(10, 79), xid_line(11, 154, "(")]), name="")
    assert health.action is HealthAction.REBOOT_NODE


def test_log_when_a_burst_repeats_then_one_finding_with_its_count():
    health = explain("\n".join(xid_line(10 + at, 119) for at in range(30)), name="")
    assert len(health.accelerators[0].findings) == 1
    assert "30 lines" in health.reasons[0]


def test_log_when_45_follows_then_it_is_no_second_fault():
    cause = "Ch 0000000c caused by previous Xid 149"
    health = explain("\n".join([xid_line(10, 31), xid_line(11, 45, cause)]), name="")
    assert (health.verdict, health.action) == (Verdict.HEALTHY, HealthAction.RESTART_APP)


def test_log_when_an_nvme_disk_has_a_pcie_error_then_no_gpu_is_blamed():
    line = (
        "{1}[Hardware Error]:   section_type: PCIe error event severity: recoverable device_id: 0000:5e:00.0 vendor_id: 0x144d"
    )
    health = explain(line, name="dmesg")
    assert health.accelerators == ()
    assert health.action.rank <= HealthAction.RECORD.rank


FABRIC = "[Feb 27 2025 15:10:02] [{level}] [tid 12727] {message}"


@pytest.mark.parametrize(
    ("level", "message", "verdict", "action"),
    [
        ("INFO", "multicast group 1 is freed.", Verdict.HEALTHY, HealthAction.NONE),
        (
            "ERROR",
            "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61",
            Verdict.FAILED,
            HealthAction.DRAIN_AND_DIAG,
        ),
        (
            "ERROR",
            "detected NVSwitch non-fatal error 20009 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61",
            Verdict.DEGRADED,
            HealthAction.RECORD,
        ),
        (
            "ERROR",
            "Fabric Manager version 535.129.03 does not match NVIDIA driver version 535.161.08",
            Verdict.FAILED,
            HealthAction.RESTART_SERVICE,
        ),
        (
            "ERROR",
            "query NVSwitch device information failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
            Verdict.HEALTHY,
            HealthAction.NONE,
        ),
        ("ERROR", "failed to initialize the fabric", Verdict.FAILED, HealthAction.RESTART_SERVICE),
        ("ERROR", "something new", Verdict.DEGRADED, HealthAction.RECORD),
    ],
)
def test_fabric_log_when_a_line_is_read_then_it_is_judged(level, message, verdict, action):
    text = "\n".join([FABRIC.format(level="INFO", message="NVLink is up"), FABRIC.format(level=level, message=message)])
    health = explain(text, name="fabricmanager.log")
    assert (health.verdict, health.action) == (verdict, action)


def test_fabric_log_when_it_has_no_line_then_unknown():
    assert explain("", name="fabricmanager.log", kind="fabric-manager-log").verdict is Verdict.UNKNOWN
    assert explain("not a log", name="", kind="fabric-manager-log").verdict is Verdict.UNKNOWN
