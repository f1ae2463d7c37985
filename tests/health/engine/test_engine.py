"""Evidence, clear conditions, repeats and silences of the verdict engine."""

from datetime import timedelta

import pytest
from tests.health.engine.node import GPUS, START, Node, finding, state

from hostler.health.engine import Look, Memory, Silence, decide, evidence, from_text, to_text, why
from hostler.model.enums import HealthAction, Verdict


def test_decide_when_nothing_was_seen_then_unknown():
    assert decide(Memory(), START).verdict is Verdict.UNKNOWN
    assert decide(Memory(), START).action is HealthAction.NONE


def test_decide_when_all_looks_are_good_then_healthy():
    node = Node()

    assert node.look(times=10).verdict is Verdict.HEALTHY
    assert why(node.decision) == ()
    assert node.memory.sessions == ()


def test_engine_when_one_source_tells_once_then_it_is_failed_but_asks_for_no_harm():
    node = Node()
    node.look()
    node.write(79)
    decision = node.look()

    assert node.said == ("failed", "record", False)
    assert decision.wants_test
    assert "would ask for reboot_node once a second source" in why(decision)[0]


def test_engine_when_two_sources_agree_then_the_action_is_asked_for():
    node = Node()
    node.write(79, 10.0)
    node.look()
    decision = node.look(state("device.lost", action="reboot_node"), seen=GPUS)

    assert node.said == ("failed", "reboot_node", True)
    (fault,) = decision.faults
    assert fault.seen_by == ("kernel-log", "nvml")
    assert dict(evidence(decision))["proof"] == "2 sources: kernel-log, nvml"


def test_engine_when_the_count_is_short_after_a_bus_fault_then_the_node_bears_witness():
    node = Node()
    node.write(79, 10.0)
    node.look(state("count.accelerators", action="reboot_node", gpu=""), seen=GPUS[1:])

    assert node.said == ("failed", "reboot_node", True)


def test_engine_when_one_source_shows_a_state_in_three_of_five_looks_then_it_is_proven():
    node = Node()
    bad = state("ecc.volatile_uncorrectable")

    node.look(bad)
    assert node.said == ("failed", "record", False)
    node.look()
    node.look(bad)
    assert node.said == ("failed", "record", False)
    node.look(bad)
    assert node.said == ("failed", "reset_gpu", True)


def test_engine_when_the_same_log_is_read_again_and_again_then_its_lines_count_once():
    node = Node()
    node.write(62, 10.0)
    node.look(times=50)

    (fault,) = node.decision.faults
    assert (fault.line_count, fault.is_proven) == (1, False)
    assert len(node.memory.past) == 1


def test_engine_when_two_looks_bring_one_answer_then_it_counts_once():
    node = Node()
    look = node.nvml(state("ecc.volatile_uncorrectable"))
    for _ in range(5):
        node.hear(look)

    assert node.said == ("failed", "record", False)


def test_engine_when_a_storm_of_lines_comes_then_it_is_one_fault_with_bounded_memory():
    node = Node()
    for second in range(2000):  # NVIDIA/NVSentinel#1120
        node.write(95, float(second))
    node.look()
    for second in range(2000, 4000):
        node.write(95, float(second))
    decision = node.look()

    (fault,) = decision.faults
    assert fault.line_count == 4000
    assert fault.wanted is HealthAction.RESET_GPU
    assert len(to_text(node.memory)) < 4000


def test_engine_when_an_xid_45_follows_another_then_there_is_one_fault():
    node = Node()
    node.write(149, 10.0, text="NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x004505c6 0x0)")
    node.write(45, 10.1, text="pid=1, name=python3, Ch 0000000c caused by previous Xid 149")
    node.look()

    assert [fault.finding.code for fault in node.decision.faults] == ["xid.149"]


def test_engine_when_an_xid_45_is_alone_then_it_harms_nothing():
    node = Node()
    node.write(45, 10.0)
    node.look()

    assert node.said == ("healthy", "restart_service", True)


def test_engine_when_the_driver_names_a_recovery_then_its_word_goes_over_the_lines_before():
    node = Node()
    node.write(79, 10.0)
    node.write(154, 11.0, text="GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    node.look(state("device.recovery", action="reset_gpu"))

    assert node.said == ("failed", "reset_gpu", True)
    assert [fault.cause for fault in node.decision.faults] == ["recovery"]


def test_engine_when_the_driver_says_none_then_good_looks_close_the_fault_in_the_same_boot():
    node = Node()
    node.write(119, 10.0)
    node.look()
    node.write(154, 90.0, text="GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")
    node.look(times=2)
    assert node.decision.verdict is Verdict.FAILED
    assert node.look(times=2).verdict is Verdict.HEALTHY


def test_engine_when_the_drivers_none_is_older_than_the_line_then_it_clears_nothing():
    node = Node()
    node.write(154, 5.0, text="GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")
    node.write(119, 10.0)

    assert node.look(times=20).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("code", "good_looks_clear", "boot_clears"),
    [
        ("nvlink.inactive", True, True),
        ("ecc.volatile_uncorrectable", False, True),
        ("rows.remap_pending", True, True),
        ("rows.remap_failed", False, False),
        ("ecc.sram_threshold", False, False),
        ("device.lost", False, True),
    ],
)
def test_engine_when_a_fault_goes_then_its_own_condition_clears_it(code, good_looks_clear, boot_clears):
    node = Node()
    node.look(state(code), times=3)
    node.look(times=2)
    assert node.decision.verdict is Verdict.FAILED
    node.look(times=20)
    assert (node.decision.verdict is Verdict.HEALTHY) is good_looks_clear
    node.reboot()
    node.look(times=3)
    assert (node.decision.verdict is Verdict.HEALTHY) is boot_clears


def test_engine_when_a_fatal_line_was_written_then_looks_alone_never_clear_it():
    node = Node()
    node.write(62, 10.0)
    node.look(times=500)
    assert node.decision.verdict is Verdict.FAILED
    node.reboot()
    assert node.look(times=2).verdict is Verdict.FAILED
    assert node.look().verdict is Verdict.HEALTHY


def test_engine_when_a_reading_is_missing_then_the_look_is_neither_good_nor_healthy():
    node = Node()
    bad = state("thermal.slowdown", action="drain_and_diag")
    node.look(bad, times=3)
    missing = ((f"{GPUS[0]}/temperature_c", "temperature_c could not be read: N/A"),)
    node.look(times=10, unknown=missing)
    assert node.decision.verdict is Verdict.FAILED
    assert node.decision.unknown == ("temperature_c could not be read: N/A",)
    assert node.look(times=3).verdict is Verdict.HEALTHY


def test_engine_when_the_accelerator_is_not_seen_then_its_fault_stays():
    node = Node()
    node.look(state("nvlink.inactive", action="restart_service"), times=3)

    assert node.look(times=10, seen=GPUS[1:]).verdict is Verdict.FAILED


def test_engine_when_it_is_hot_then_three_samples_make_a_warning_and_no_harm():
    node = Node()
    hot = state("thermal.warning", "degraded", "record")

    assert node.look(hot, times=2).verdict is Verdict.HEALTHY
    assert node.look().verdict is Verdict.HEALTHY
    assert node.look(hot, times=2).verdict is Verdict.HEALTHY
    assert node.look(hot).verdict is Verdict.DEGRADED
    assert node.decision.action is HealthAction.RECORD
    assert node.look(times=3).verdict is Verdict.HEALTHY


def test_engine_when_hardware_slows_down_at_a_rate_then_a_diagnosis_is_asked_for():
    node = Node()
    slow = state("throttle.hardware_thermal", "degraded", "record")
    node.look(slow, times=3)
    assert node.said == ("degraded", "record", True)
    node.look(slow, times=5)
    assert node.decision.action is HealthAction.DRAIN_AND_DIAG
    assert "hardware slowdowns in 600 s" in why(node.decision)[0]


def test_engine_when_probes_give_no_answer_then_unknown_and_nothing_is_asked_for():
    node = Node()
    node.look()
    for _ in range(20):
        node.hear(node.nvml(is_answered=False), node.kernel(is_answered=False))
        assert node.said == ("unknown", "none", False)
    assert node.look().verdict is Verdict.HEALTHY


def test_engine_when_only_the_driver_hangs_then_five_looks_ask_for_a_reboot():
    node = Node()
    node.look()
    node.hear(node.nvml(is_answered=False), node.kernel())
    assert node.said == ("unknown", "none", False)
    for _ in range(4):
        node.hear(node.nvml(is_answered=False), node.kernel())
    assert node.said[:2] == ("unknown", "reboot_node")


def test_engine_when_the_last_look_is_old_then_unknown():
    node = Node()
    node.look()

    assert decide(node.memory, node.now + timedelta(seconds=601)).verdict is Verdict.UNKNOWN


def test_memory_when_written_and_read_then_it_is_the_same():
    node = Node()
    node.write(62, 0.0)
    node.write(13, 5.0, text="(GPC 1, TPC 3, SM 0)")
    node.look(state("ecc.volatile_uncorrectable"), unknown=((f"{GPUS[1]}/name", "name could not be read"),))
    node.remedy("reset_gpu")

    assert from_text(to_text(node.memory)) == node.memory
    assert from_text(None) == from_text("{") == from_text('{"version": 99}') == from_text("[]") == Memory()


def test_finding_when_made_for_tests_then_it_names_its_document():
    assert finding("x").source == "document of x"


def test_engine_when_a_fault_shows_again_after_a_reset_then_that_reset_does_not_clear_it_later():
    node = Node()
    bad = state("ecc.volatile_uncorrectable")
    node.look(bad, times=3)
    node.reboot()
    node.look(bad)
    assert node.look(times=10).verdict is Verdict.FAILED
    node.reboot()
    assert node.look(times=3).verdict is Verdict.HEALTHY


def test_engine_when_a_late_line_tells_of_an_older_recovery_then_it_clears_nothing():
    node = Node()
    node.write(119, 10.0)
    node.look()
    node.write(154, 5.0, text="GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")

    assert node.look(times=10).verdict is Verdict.FAILED


def test_engine_when_lines_follow_each_other_then_they_are_one_burst_and_a_later_one_is_a_second():
    node = Node()
    for second in (10.0, 11.0, 100.0, 270.0):
        node.write(62, second)
    node.look()
    assert node.said == ("failed", "record", False)
    node.write(62, 1000.0)
    node.look()
    assert node.said == ("failed", "reset_gpu", True)
    assert node.decision.faults[0].proof == "2 separate bursts"


def test_engine_when_a_line_was_written_during_maintenance_then_its_repeat_is_a_first():
    node = Node()
    node.silences = (Silence(starts_at=START, ends_at=START + timedelta(minutes=10), who="operator", why="swap"),)
    node.write(79, 10.0)
    node.look(state("device.lost", action="reboot_node"))
    node.reboot()
    node.look(times=20)
    node.write(79, 10.0)
    node.look(state("device.lost", action="reboot_node"))

    assert node.said == ("failed", "reboot_node", True)


def test_engine_when_a_look_of_an_older_boot_comes_late_then_it_says_nothing():
    node = Node()
    late = node.nvml(state("ecc.volatile_uncorrectable"))
    node.look()
    node.reboot()
    node.look()

    assert node.hear(late).verdict is Verdict.HEALTHY


def test_engine_when_the_first_boot_is_told_then_that_is_no_reboot():
    node = Node()
    untold = Look(stream="nvml", seen=frozenset(GPUS), states=(state("ecc.volatile_uncorrectable"),))
    node.hear(untold)
    node.hear(untold)

    assert node.look(times=10).verdict is Verdict.FAILED
