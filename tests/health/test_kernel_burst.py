import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.health.shared_captures import FOLDER, capture, needs_captures

from hostler.health.kernel_burst import MOST_WAITING, KernelLog, read_log
from hostler.model.enums import HealthAction, Verdict

GPU = "PCI:0000:04:00"


def xid_line(code, text="text", at=None, gpu=GPU):
    stamp = "" if at is None else f"[{at:12.6f}] "
    return f"{stamp}NVRM: Xid ({gpu}): {code}, pid=7, name=a, {text}"


def actions(*lines):
    return [(event.code, event.nvidia_action) for event in read_log(lines)]


def test_45_when_alone_then_restart_the_fabric_manager():
    assert actions(xid_line(45, at=10)) == [(45, "RESTART_FM")]
    assert actions(xid_line(45)) == [(45, "RESTART_FM")]


def test_45_when_another_xid_came_before_then_follow_it():
    found = read_log([xid_line(31, at=10), xid_line(45, at=11), xid_line(45, at=12)])
    assert [event.nvidia_action for event in found] == ["RESTART_APP", "IGNORE", "IGNORE"]
    assert [event.is_follow_up for event in found] == [False, True, True]


def test_45_when_many_follow_one_fault_then_each_is_a_follow_up():
    lines = [xid_line(95), *[xid_line(45, f"Ch {channel:08x}") for channel in range(40)]]
    assert {event.nvidia_action for event in read_log(lines)[1:]} == {"IGNORE"}


def test_45_when_the_other_is_of_another_gpu_or_long_ago_then_alone():
    assert actions(xid_line(31, at=10, gpu="PCI:0000:05:00"), xid_line(45, at=11))[1] == (45, "RESTART_FM")
    assert actions(xid_line(31, at=10), xid_line(45, at=500))[1] == (45, "RESTART_FM")
    far = actions(xid_line(31), *["usb 1-1: new device"] * 20, xid_line(45))
    assert far[-1] == (45, "RESTART_FM")


def test_45_when_it_names_its_cause_then_follow_up_wherever_it_stands():
    assert actions(xid_line(45, "Ch 0000000c caused by previous Xid 145")) == [(45, "IGNORE")]


def test_45_when_the_switch_failed_fatally_then_follow_up():
    line = "[   10.000000] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)"
    assert actions(line, xid_line(45, at=11))[1] == (45, "IGNORE")


@pytest.mark.parametrize("remap", [63, 64])
def test_48_when_a_remap_is_near_then_drain_and_reset(remap):
    assert actions(xid_line(48, at=10), xid_line(remap, at=10.5))[0] == (48, "DRAIN_AND_RESET")
    assert actions(xid_line(remap, at=9.9), xid_line(48, at=10))[1] == (48, "DRAIN_AND_RESET")
    assert actions(xid_line(48), xid_line(remap))[0] == (48, "DRAIN_AND_RESET")


def test_48_when_alone_or_with_others_then_reset():
    assert actions(xid_line(48, at=10)) == [(48, "RESET_GPU")]
    assert actions(xid_line(31, at=10), xid_line(48, at=10))[1] == (48, "RESET_GPU")
    assert actions(xid_line(48, at=10), xid_line(63, at=10.1, gpu="PCI:0000:05:00"))[0] == (48, "RESET_GPU")


def test_nvlink5_when_it_refers_to_154_then_the_drivers_word_decides():
    line = "NVRM: Xid (PCI:0008:06:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 0 (0x00000004 0x00000001 0x00000000 0x00000000)"
    alone = read_log([line])[0]
    assert (alone.nvidia_action, alone.action) == ("XID_154_EVAL", HealthAction.RESTART_APP)
    told = read_log(
        [line, "NVRM: Xid (PCI:0008:06:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"]
    )[0]
    assert (told.action, told.is_fatal) == (HealthAction.RESET_GPU, True)


@pytest.mark.parametrize(
    "lines",
    [
        [
            "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0",
            "               NVRM: (PCI ID: 10de:26b5) installed in this system has",
            "               NVRM: fallen off the bus and is not responding to commands.",
        ],
        [
            "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5)",
            "NVRM: installed in this system has fallen off the bus and is not",
            "NVRM: responding to commands.",
        ],
        [
            "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5)",
            "NVRM: installed in this system has fallen",
            "NVRM: off the bus and is not",
        ],
    ],
)
def test_fallen_when_over_several_lines_then_one_event_with_the_address(lines):
    found = [event for event in read_log(lines) if event.kind == "fallen_off_bus"]
    assert [(event.pci, event.is_fatal) for event in found] == [("0000:b3:00.0", True)]


def test_fallen_when_the_named_gpu_is_long_ago_then_no_address():
    found = read_log(["NVRM: The NVIDIA GPU 0000:b3:00.0", *["x"] * 9, "NVRM: fallen off the bus and is not responding"])
    assert found[-1].pci is None


def test_xid_when_it_names_a_uuid_then_the_address_told_before():
    uuid = "GPU-509665ad-b600-ac93-3616-d754b23d636d"
    found = read_log([f"NVRM: GPU at PCI:0000:9b:00: {uuid}", f"NVRM: Xid ({uuid}): 79, GPU has fallen off the bus."])
    assert found[1].pci == "0000:9b:00"


def test_sxid_when_data_lines_follow_then_they_say_what_the_first_said():
    first = "[  1.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
    data = "[  1.1] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Data {0x50610002, 0x10100030}"
    told, follow = read_log([first, data])
    assert (told.verdict, told.is_fatal) == (Verdict.DEGRADED, False)
    assert (follow.verdict, follow.action, follow.is_follow_up) == (told.verdict, told.action, True)
    assert read_log([data])[0].verdict is Verdict.FAILED


def test_log_when_the_year_turns_then_a_burst_stays_one():
    lines = [f"Dec 31 23:59:58 node1 kernel: {xid_line(31)}", f"Jan  1 00:00:03 node1 kernel: {xid_line(45)}"]
    assert actions(*lines)[1] == (45, "IGNORE")


def test_log_when_one_waits_then_order_is_kept_and_memory_is_bounded():
    log = KernelLog()
    decided = log.feed(xid_line(48, at=10))
    assert decided == []
    assert log.is_waiting
    for count in range(MOST_WAITING + 10):
        decided += log.feed(f"[   10.{count:06d}] usb 1-1: line")
    assert decided[0].code == 48
    assert len(decided) + len(log.flush()) == MOST_WAITING + 11


@needs_captures
def test_log_when_labelled_lines_come_in_one_stream_then_kinds_stay():
    cases = [json.loads(line) for line in capture("kernel-logs/kernel_lines.jsonl").splitlines()]
    found = read_log(case["line"] for case in cases)
    assert len(found) == len(cases)
    assert [event.code for event in found if event.kind == "xid"] == [case["code"] for case in cases if case["kind"] == "xid"]


def test_captures_when_the_folder_is_near_then_lines_are_there():
    assert FOLDER is None or (FOLDER / "kernel-logs").is_dir()


LINES = st.one_of(
    st.builds(xid_line, st.sampled_from((13, 31, 45, 48, 63, 74, 79, 145, 154)), at=st.one_of(st.none(), st.floats(0, 1e5))),
    st.text(max_size=60),
)


@given(st.lists(LINES, max_size=30), st.sets(st.integers(0, 30)))
@settings(max_examples=150, deadline=None)
def test_log_when_any_lines_then_one_event_each_in_order(lines, rests):
    log, events = KernelLog(), []
    for at, line in enumerate(lines):
        events += log.feed(line)
        if at in rests:
            events += log.flush()
    events += log.flush()
    assert [event.line for event in events] == [event.line for event in read_log(lines)]
    assert len(events) == len(lines)
