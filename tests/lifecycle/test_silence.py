"""Silence counts against a node only when somebody asked it: nobody asks between two drivers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests import samples

from hostler.lifecycle.fleet import LifecycleSettings
from hostler.lifecycle.next_slot import node_step
from hostler.lifecycle.slots import Slot
from hostler.lifecycle.step import Effect, Kind, Memory
from hostler.model.enums import FleetMode, NodeState, Phase

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
SETTINGS = LifecycleSettings(deployment="lab", mode=FleetMode.ENFORCE, tenant_caps={}, boot_timeout_s=60)
LONG_AGO = NOW - timedelta(seconds=100)


def step_of(state, memory, **changes):
    node = replace(
        samples.node(samples.intent(samples.lease())),
        state=state,
        launched_at=LONG_AGO,
        heartbeat_at=LONG_AGO,
        address="127.0.0.1",
        **changes,
    )
    slot = Slot(index=0, intent=None, node=node, leftovers=(), replaced_count=0, last_fault="")
    (step,) = node_step(slot, NOW, SETTINGS, memory, Phase.SETUP)
    return step


@pytest.mark.parametrize(
    ("state", "key", "asked"),
    [
        (NodeState.LAUNCHED, "boot", Kind.BOOT),
        (NodeState.UNREACHABLE, "boot", Kind.BOOT),
        (NodeState.REGISTERED, "setup", Kind.POLL_SETUP),
    ],
)
def test_node_when_nobody_drove_its_lease_for_long_then_asked_before_it_is_ended(state, key, asked):
    memory = Memory(fence=1)
    first = step_of(state, memory, setup_attempt=1, setup_job_id="setup-1")
    assert isinstance(first, Effect)
    assert first.kind is asked
    memory.hold(first.key, NOW - timedelta(seconds=30), 1.0)
    again = step_of(state, memory, setup_attempt=1, setup_job_id="setup-1")
    assert isinstance(again, Effect)
    assert again.kind is asked, "one unanswered question is not enough"
    memory.hold(first.key, NOW - timedelta(seconds=20), 1.0)
    assert first.key.startswith(key)
    after = step_of(state, memory, setup_attempt=1, setup_job_id="setup-1")
    assert isinstance(after, Effect)
    assert after.kind is Kind.END_NODE
