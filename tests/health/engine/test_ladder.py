"""The ladder, the lemon memory, repeats, silences and witnesses of the verdict engine."""

from datetime import timedelta

from tests.health.engine.node import GPUS, START, Node, state

from hostler.health.engine import Look, Silence, evidence, why
from hostler.model.enums import HealthAction, Verdict


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
