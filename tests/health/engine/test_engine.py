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


def test_engine_when_a_reboot_clears_a_counter_then_the_fault_is_remembered_and_its_return_asks_for_more():
    node = Node()
    bad = state("ecc.volatile_uncorrectable")
    node.look(bad, times=3)
    node.reboot()
    assert node.look(times=3).verdict is Verdict.HEALTHY
    node.look(bad, times=3)
    assert node.decision.action is HealthAction.REBOOT_NODE
    node.reboot()
    node.look(times=3)
    decision = node.look(bad, times=3)
    assert decision.action is HealthAction.DRAIN_AND_REPLACE
    assert "time 3 in 7 days" in why(decision)[0]


def test_engine_when_the_second_fault_comes_weeks_later_then_it_is_a_first_one():
    node = Node(every_s=900.0)
    bad = state("ecc.volatile_uncorrectable")
    node.look(bad, times=3)
    node.reboot()
    node.look(times=800)  # 8.3 days
    assert node.look(bad, times=3).action is HealthAction.RESET_GPU


def test_engine_when_an_xid_comes_again_after_a_boot_then_its_repeat_rule_counts():
    node = Node()
    node.write(79, 10.0)
    node.look(state("device.lost", action="reboot_node"))
    node.reboot()
    node.look(times=3)
    node.write(79, 10.0)
    node.look(state("device.lost", action="reboot_node"))

    assert node.said == ("failed", "drain_and_replace", True)


def test_engine_when_a_remedy_does_not_help_then_the_next_rung_is_asked_for():
    node = Node()
    down = state("nvlink.inactive", action="restart_service")
    node.look(down, times=3)
    assert node.decision.action is HealthAction.RESTART_SERVICE
    for done, then in (("restart_service", "reset_gpu"), ("reset_gpu", "reboot_node"), ("reboot_node", "drain_and_replace")):
        node.remedy(done)
        node.look(down, times=3)
        assert node.decision.action.value == then


def test_engine_when_five_remedies_were_needed_in_a_week_then_the_node_is_a_lemon():
    node = Node()
    for gpu in GPUS[:4]:
        node.look(state("ecc.volatile_uncorrectable", gpu=gpu), times=3)
        node.remedy("reset_gpu", gpu)
        node.look(times=3)
    node.remedy("reset_gpu")
    node.look(state("ecc.volatile_uncorrectable", gpu=GPUS[5]), times=3)

    assert node.decision.action is HealthAction.DRAIN_AND_REPLACE


def test_engine_when_shader_faults_repeat_on_one_unit_then_a_diagnosis_else_it_is_the_program():
    same, other = "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0)", "Graphics SM Warp Exception on (GPC 2, TPC 3, SM 0)"
    for second, wanted in ((same, "drain_and_diag"), (other, "restart_app")):
        node = Node()
        node.write(13, 10.0, text=same)
        node.look()
        node.write(13, 4000.0, text=second)
        node.look()
        assert node.decision.faults[0].wanted.value == wanted
        assert node.decision.verdict is Verdict.HEALTHY
        assert node.decision.action.rank <= HealthAction.RESTART_APP.rank


def test_engine_when_page_faults_come_from_two_programs_on_one_gpu_only_then_a_diagnosis_is_wanted():
    def wanted(*lines):
        node = Node()
        for number, (gpu, pid) in enumerate(lines):
            node.write(31, 1000.0 * (number + 1), gpu=gpu, text=f"pid={pid}, name=python3, Ch 00000007")
            node.look()
        return max((fault.wanted for fault in node.decision.faults), key=lambda rung: rung.rank).value

    assert wanted((GPUS[0], 1), (GPUS[0], 2)) == "drain_and_diag"
    assert wanted((GPUS[0], 1), (GPUS[0], 1)) == "restart_app"
    assert wanted((GPUS[0], 1), (GPUS[1], 2), (GPUS[0], 3)) == "restart_app"


def test_engine_when_maintenance_is_announced_then_nothing_is_asked_for_nor_held_against_the_node():
    node = Node()
    node.silences = (Silence(starts_at=START, ends_at=START + timedelta(hours=1), who="operator", why="cable work"),)
    bad = state("nvlink.inactive", action="reboot_node")
    node.look(bad, times=10)
    assert node.said == ("failed", "record", True)
    assert "silenced by operator: cable work" in why(node.decision)[0]
    node.look(times=3)
    assert node.memory.past == ()


def test_engine_when_the_maintenance_is_over_then_what_is_still_bad_asks_again():
    node = Node()
    end = START + timedelta(minutes=5)
    node.silences = (Silence(starts_at=START, ends_at=end, who="operator", why="cable work", codes=("nvlink.",)),)
    bad = state("nvlink.inactive", action="reboot_node")
    assert node.look(bad, times=4).action is HealthAction.RECORD
    assert node.look(bad, times=2).action is HealthAction.REBOOT_NODE


def test_engine_when_a_silence_is_of_another_code_then_it_hushes_nothing():
    node = Node()
    node.silences = (
        Silence(starts_at=START, ends_at=START + timedelta(hours=1), who="operator", why="cable work", codes=("nvlink.",)),
    )
    assert node.look(state("ecc.volatile_uncorrectable"), times=3).action is HealthAction.RESET_GPU


def test_engine_when_the_driver_was_changed_under_a_job_then_the_reboot_waits_for_it():
    node = Node()
    decision = node.look(state("driver.mismatch", action="reboot_node", gpu=""), times=3)

    assert (decision.action, decision.at_idle) == (HealthAction.REBOOT_NODE, True)
    assert why(decision)[0].endswith("asks for reboot_node when no job runs")


def test_engine_when_several_documents_tell_then_the_strictest_is_named():
    node = Node()
    node.write(63, 10.0)
    node.write(48, 11.0)
    decision = node.look(
        state("ecc.volatile_uncorrectable", action="reset_gpu"), state("ecc.sram_threshold", action="drain_and_replace")
    )

    (fault,) = decision.faults
    assert fault.finding.source == "document of ecc.sram_threshold"
    assert dict(evidence(decision))["source"] == "document of ecc.sram_threshold"
    assert fault.clears == "another node"


def test_engine_when_a_test_failed_beside_a_line_then_it_bears_witness():
    node = Node()
    node.write(62, 10.0)
    node.look()
    failed = Look(stream="dcgm", taken_at="t", seen=frozenset(GPUS), states=(state("dcgm.pcie", action="drain_and_diag"),))
    node.hear(failed)

    assert node.decision.is_confirmed
    assert {fault.cause for fault in node.decision.faults if fault.is_proven} == {"engine", "test"}


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
