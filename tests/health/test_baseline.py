from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.health.baseline import Bound, Measurement, Next, Peer, finding_of, judge, next_after, pairs
from hostler.model.enums import HealthAction, Verdict

NOW = datetime(2026, 12, 1, tzinfo=UTC)
PEER = Peer(accelerator="H100", driver_version="580.65.06", instance_type="Standard_ND96isr_H100_v5")


def measured(node, value, **changes):
    values = {"node": node, "peer": PEER, "metric": "all_reduce_gb_per_s", "value": value, "at": NOW, **changes}
    return Measurement(**values)


def fleet(*values, **changes):
    return [measured(f"node-{number}", value, **changes) for number, value in enumerate(values)]


def test_judge_when_there_are_few_nodes_then_the_floor_counts():
    good, bad = measured("me", 461.0), measured("me", 459.0)

    assert judge(good, fleet(*[480.0] * 7)).bound is Bound.FLOOR
    assert judge(good, fleet(*[480.0] * 7)).verdict is Verdict.HEALTHY
    assert judge(bad, fleet(*[480.0] * 7)).verdict is Verdict.FAILED


def test_judge_when_there_are_eight_others_then_their_median_counts():
    found = judge(measured("me", 455.0), fleet(480, 481, 479, 480, 482, 478, 480, 480))

    assert (found.bound, found.verdict) == (Bound.BASELINE, Verdict.FAILED)
    assert "fleet median 480 of 8 nodes" in found.words
    assert judge(measured("me", 457.0), fleet(480, 481, 479, 480, 482, 478, 480, 480)).verdict is Verdict.HEALTHY


def test_judge_when_nodes_differ_by_nature_then_the_limit_is_as_wide_as_they_are():
    wide = fleet(300, 340, 380, 420, 460, 500, 540, 580)

    assert judge(measured("me", 250.0), wide).verdict is Verdict.HEALTHY


def test_judge_when_one_sick_node_is_in_the_fleet_then_the_median_does_not_move():
    assert judge(measured("me", 450.0), fleet(480, 481, 479, 480, 482, 478, 480, 100)).verdict is Verdict.FAILED


def test_judge_when_others_are_of_another_kind_then_they_do_not_count():
    other = Peer(accelerator="H100", driver_version="570.00", instance_type=PEER.instance_type)
    history = [*fleet(*[900.0] * 9, peer=other), *fleet(*[900.0] * 9, scope="two nodes"), *fleet(*[900.0] * 9, metric="x")]

    assert judge(measured("me", 470.0), history).bound is Bound.FLOOR


def test_judge_when_a_node_was_measured_often_then_its_newest_counts_and_its_own_past_does_not():
    old = fleet(*[100.0] * 8, at=NOW - timedelta(days=1))
    mine = [measured("me", 1.0) for _ in range(20)]

    assert judge(measured("me", 470.0), [*old, *fleet(*[480.0] * 8), *mine]).words.startswith(
        "all_reduce_gb_per_s 470: fleet median 480"
    )


def test_judge_when_less_is_better_then_the_limit_is_above():
    history = fleet(*[5.7] * 8, metric="kernel_launch_us", is_less_better=True)

    assert judge(measured("me", 6.1, metric="kernel_launch_us", is_less_better=True), history).verdict is Verdict.FAILED
    assert judge(measured("me", 5.0, metric="kernel_launch_us", is_less_better=True), history).verdict is Verdict.HEALTHY


def test_judge_when_nothing_is_known_then_it_is_not_judged():
    assert judge(measured("me", 1.0, metric="made_up"), []).verdict is Verdict.UNKNOWN


def test_judge_when_the_value_is_no_number_then_it_fails():
    assert judge(measured("me", float("nan")), fleet(*[480.0] * 8)).verdict is Verdict.FAILED


def results(*entries, scope="node"):
    found = []
    for value, alone in entries:
        one = measured("me", value, was_alone=alone, scope=scope)
        found.append((one, judge(one, fleet(*[480.0] * 8, scope=scope))))
    return found


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], Next.NOTHING),
        ([(480.0, False)], Next.NOTHING),
        ([(300.0, False)], Next.REPEAT_ALONE),
        ([(300.0, False), (479.0, True)], Next.NOTHING),
        ([(300.0, False), (300.0, True)], Next.ACCUSE),
        ([(300.0, True)], Next.ACCUSE),
    ],
)
def test_next_after_when_a_test_fails_then_it_is_repeated_once_and_alone(entries, expected):
    assert next_after(results(*entries)) is expected


def test_next_after_when_several_nodes_took_part_then_the_suspect_is_paired_first():
    failed = results((300.0, False), (300.0, True), scope="two nodes")
    ((_, bad),) = results((300.0, True))
    ((_, good),) = results((480.0, True))

    assert next_after(failed) is Next.PAIR
    assert next_after(failed, paired=bad) is Next.ACCUSE
    assert next_after(failed, paired=good) is Next.NOTHING


def test_pairs_when_partners_are_near_then_they_are_taken_and_none_twice():
    racks = {"a": "r1", "b": "r2", "x": "r2", "y": "r1", "z": "r1"}

    assert pairs(["a", "b"], ["x", "y", "z"], racks) == [("a", "y"), ("b", "x")]
    assert pairs(["a", "b"], ["y"]) == [("a", "y")]
    assert pairs(["a"], ["a"]) == []


def test_finding_when_a_test_failed_then_it_asks_for_a_diagnosis():
    ((one, judged),) = results((300.0, True))

    assert finding_of(one, judged).action is HealthAction.DRAIN_AND_DIAG
    ((one, judged),) = results((480.0, True))
    assert finding_of(one, judged) is None


@given(st.lists(st.floats(400, 560), min_size=8, max_size=30))
def test_judge_when_a_node_is_at_the_median_then_it_never_fails(values):
    history = fleet(*values)
    middle = sorted(values)[len(values) // 2]

    assert judge(measured("me", middle), history).verdict is Verdict.HEALTHY
