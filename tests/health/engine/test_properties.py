"""What holds of the engine whatever comes: order within a moment, repetition, clocks that jump."""

import json
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.health.engine.node import GPUS, START, state, xid_line

from hostler.health.engine import Look, Memory, decide, from_text, observe, to_text, why, xid_events
from hostler.health.engine.memory import MOST_MARKS, MOST_PAST, MOST_SESSIONS
from hostler.model.enums import HealthAction, Verdict

CODES = (
    "ecc.volatile_uncorrectable",
    "nvlink.inactive",
    "rows.remap_failed",
    "thermal.warning",
    "throttle.hardware",
    "device.lost",
)
XIDS = (13, 31, 45, 48, 62, 63, 79, 94, 95, 119, 154, 999)

states = st.builds(
    state,
    st.sampled_from(CODES),
    st.sampled_from(["failed", "degraded"]),
    st.sampled_from([rung.value for rung in HealthAction]),
    st.sampled_from([*GPUS[:2], ""]),
)
lines = st.builds(
    xid_line, st.sampled_from(XIDS), st.none() | st.floats(0, 1e6), st.sampled_from(GPUS[:2]), st.sampled_from(["a", "b"])
)


@st.composite
def looks(draw, boots=("boot-1", "boot-2", None)):
    return Look(
        stream=draw(st.sampled_from(["nvml", "kernel-log", "dcgm"])),
        taken_at=draw(st.sampled_from(["", "1", "2", "3"])),
        boot_id=draw(st.sampled_from(boots)),
        is_answered=draw(st.booleans()),
        seen=frozenset(draw(st.lists(st.sampled_from(GPUS[:2]), max_size=2))),
        states=tuple(draw(st.lists(states, max_size=3))),
        events=xid_events(draw(st.lists(lines, max_size=4))),
        unknown=tuple(draw(st.lists(st.just((f"{GPUS[0]}/temperature_c", "not read")), max_size=1))),
    )


moments = st.lists(st.lists(looks(), min_size=1, max_size=4), min_size=1, max_size=8)


def play(story, steps=None):
    memory, now = Memory(), START
    for number, moment in enumerate(story):
        now += timedelta(seconds=60) if steps is None else steps[number]
        memory = observe(memory, moment, now)
    return memory, now


@given(moments, st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_observe_when_the_looks_of_a_moment_come_in_another_order_or_twice_then_nothing_differs(story, rng):
    shuffled = []
    for moment in story:
        twice = moment + rng.sample(moment, rng.randint(0, len(moment)))
        rng.shuffle(twice)
        shuffled.append(twice)

    assert play(shuffled)[0] == play(story)[0]


@given(moments)
@settings(max_examples=25, deadline=None)
def test_engine_when_anything_comes_then_it_answers_and_its_memory_is_bounded_and_kept_as_text(story):
    memory, now = play(story)
    decision = decide(memory, now)

    assert isinstance(why(decision), tuple)
    assert from_text(to_text(memory)) == memory
    assert len(memory.sessions) <= MOST_SESSIONS
    assert len(memory.past) <= MOST_PAST
    assert len(memory.marks) <= MOST_MARKS


@given(moments)
@settings(max_examples=25, deadline=None)
def test_decide_when_one_source_told_and_only_once_then_it_never_asks_for_harm(story):
    first = [look for look in story[0] if look.stream == "kernel-log"][:1]
    memory = observe(Memory(), first, START)

    decision = decide(memory, START)
    harmful = [fault for fault in decision.faults if fault.action.rank >= HealthAction.RESET_GPU.rank]
    assert all("separate bursts" in fault.proof for fault in harmful)


jumps = st.sampled_from([timedelta(seconds=60), timedelta(days=-400), timedelta(days=400), timedelta(hours=-1), timedelta(0)])


@given(st.lists(jumps, min_size=12, max_size=12))
@settings(max_examples=30, deadline=None)
def test_engine_when_the_clock_jumps_then_no_fault_expires_and_none_is_made(steps):
    bad = [Look(stream="nvml", boot_id="b", seen=frozenset(GPUS), states=(state("ecc.volatile_uncorrectable"),))]
    good = [Look(stream="nvml", boot_id="b", seen=frozenset(GPUS))]

    memory, now = play([bad] * 12, steps)
    assert decide(memory, now).action is HealthAction.RESET_GPU
    memory, now = play([*[bad] * 3, *[good] * 9], steps)
    assert decide(memory, now).verdict is Verdict.FAILED  # only a reset clears it, no time does
    memory, now = play([good] * 12, steps)
    assert (decide(memory, now).verdict, decide(memory, now).action) == (Verdict.HEALTHY, HealthAction.NONE)


@given(st.lists(jumps, min_size=6, max_size=6))
@settings(max_examples=20, deadline=None)
def test_engine_when_the_clock_jumps_between_two_faults_of_a_week_then_the_lemon_is_known(steps):
    bad = [Look(stream="nvml", boot_id="b", seen=frozenset(GPUS), states=(state("nvlink.inactive", action="reboot_node"),))]
    good = [Look(stream="nvml", boot_id="b", seen=frozenset(GPUS))]
    minute = [timedelta(seconds=60)] * 3
    memory, now = play([*[bad] * 3, *[good] * 6, *[bad] * 3], [*minute, *steps, *minute])

    assert decide(memory, now).action is HealthAction.DRAIN_AND_REPLACE


@given(st.text(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_from_text_when_a_row_is_damaged_then_a_new_memory_begins(text):
    assert isinstance(from_text(text), Memory)
