"""Decisions about one node: boot, setup, probe, ending; and when the cloud is looked at again. Pure."""

from datetime import datetime

from hostler.cloud.driver import MachineState
from hostler.lifecycle.fleet import LifecycleSettings
from hostler.lifecycle.slots import GIVEN_BACK, Slot, live_nodes, unresolved
from hostler.lifecycle.step import Effect, Kind, Memory, Step, Wait, when_due
from hostler.model.enums import IntentState, NodeState, Phase, Verdict
from hostler.model.lease import LeaseView, Node

STEADY_LOOK_S = 60
"""How often the cloud is asked about nodes that are well."""

VERY_LONG = 3
"""Boot times of silence after which one unanswered question is enough."""

FIT = frozenset({Verdict.HEALTHY, Verdict.DEGRADED})
"""Verdicts that may work. ``unknown`` is never healthy."""

RESTLESS = frozenset({NodeState.LAUNCHED, NodeState.TERMINATING, NodeState.STOPPING, NodeState.UNREACHABLE})
OFF = frozenset({NodeState.STOPPING, NodeState.STOPPED})
OBSERVE_TEXT = (
    "mode: observe in fleet.yaml: nothing is bought or ended; what runs goes on, and costs. Set `mode: enforce` to act."
)

GOING = frozenset({MachineState.TERMINATING, MachineState.TERMINATED})


def look_step(view: LeaseView, now: datetime, settings: LifecycleSettings, memory: Memory) -> Effect | Wait | None:
    """Returns the look at the cloud when it is due, a wait when it is due but must be put off, None when it is not due."""
    if not any(intent.state is not IntentState.REFUSED for intent in view.intents):
        return None
    nodes = live_nodes(view)
    doubts = unresolved(view, memory.fence)
    if not nodes and not doubts:
        return None
    restless = bool(doubts) or any(node.state in RESTLESS for node in nodes)
    every_s = settings.poll_s if restless else STEADY_LOOK_S
    effect = Effect(kind=Kind.LOOK, key="look")
    if memory.looked_at is None or (now - memory.looked_at).total_seconds() >= every_s:
        return when_due(effect, memory, now, "the cloud is asked for the machines")
    return None


def end(node: Node, reason: str, now: datetime, memory: Memory) -> Step:
    """Returns the ending of a node: the order first, then patience; the order again while the cloud shows it alive."""
    key = f"end:{node.node_name}"
    effect = Effect(kind=Kind.END_NODE, key=key, slot_index=node.slot_index, node_name=node.node_name, reason=reason)
    words = f"slot {node.slot_index}: the cloud has not said yet that {node.provider_id} is gone"
    if node.state is not NodeState.TERMINATING:
        return effect
    if memory.machines.get(node.provider_id) in GOING:
        return Wait(reason=words, retry_after_s=5.0)
    return when_due(effect, memory, now, words)


def node_step(  # noqa: PLR0911 - one return a state reads best
    slot: Slot, now: datetime, settings: LifecycleSettings, memory: Memory, goal: Phase
) -> list[Step]:
    """Returns what brings one slot's node to ``goal``; empty when it is there."""
    if slot.leftovers:
        return [end(node, f"{GIVEN_BACK}: a newer machine has the slot", now, memory) for node in slot.leftovers]
    node = slot.node
    if node is None:
        return [Wait(reason=f"slot {slot.index}: no machine yet", retry_after_s=settings.poll_s)]
    if node.state is NodeState.TERMINATING:
        return [end(node, node.ending_reason or "ending", now, memory)]
    if node.state in OFF:
        return [end(node, "switched off at the cloud", now, memory)]
    if node.state is NodeState.LAUNCHED:
        return [_boot(node, now, settings, memory)]
    if node.state is NodeState.UNREACHABLE:
        return [_find_again(node, now, settings, memory)]
    if node.state is NodeState.REGISTERED and goal is not Phase.LAUNCH:
        return [_setup(node, now, settings, memory)]
    if node.state is NodeState.INITIALIZED and goal is Phase.VALIDATE and node.health not in FIT:
        key = f"probe:{node.node_name}"
        effect = Effect(kind=Kind.PROBE, key=key, slot_index=slot.index, node_name=node.node_name)
        return [when_due(effect, memory, now, f"slot {slot.index}: the probe is tried again")]
    return []


def silent_s(node: Node, now: datetime) -> float:
    """Returns seconds since the node was last heard of by its own voice."""
    heard = node.heartbeat_at or node.launched_at
    return (now - heard).total_seconds()


def _asked_in_vain(key: str, silent: float, memory: Memory, settings: LifecycleSettings) -> bool:
    """True when this driver has asked the node itself and got no answer, twice, or once when it is silent for very long.

    Between two drivers nobody asks (a deferral, a pause, an API server that was away): such silence is ours, not the node's.
    """
    tries = memory.tries.get(key, 0)
    return tries > 1 or (tries > 0 and silent > VERY_LONG * settings.boot_timeout_s)


def _boot(node: Node, now: datetime, settings: LifecycleSettings, memory: Memory) -> Step:
    key = f"boot:{node.node_name}"
    age_s = (now - node.launched_at).total_seconds()
    is_late = age_s > settings.boot_timeout_s
    if is_late and (node.address is None or _asked_in_vain(key, age_s, memory, settings)):
        return end(node, f"boot: no answer {settings.boot_timeout_s:.0f} s after launch", now, memory)
    words = f"slot {node.slot_index}: {node.provider_id} boots"
    if node.address is None:
        return Wait(reason=words, retry_after_s=settings.poll_s)
    effect = Effect(kind=Kind.BOOT, key=key, slot_index=node.slot_index, node_name=node.node_name)
    return when_due(effect, memory, now, words)


def _find_again(node: Node, now: datetime, settings: LifecycleSettings, memory: Memory) -> Step:
    key = f"boot:{node.node_name}"
    silent = silent_s(node, now)
    if silent > settings.boot_timeout_s and _asked_in_vain(key, silent, memory, settings):
        return end(node, f"unreachable for {silent_s(node, now):.0f} s", now, memory)
    effect = Effect(kind=Kind.BOOT, key=key, slot_index=node.slot_index, node_name=node.node_name)
    return when_due(effect, memory, now, f"slot {node.slot_index}: {node.provider_id} does not answer")


def _setup(node: Node, now: datetime, settings: LifecycleSettings, memory: Memory) -> Step:
    allowed_s = settings.boot_timeout_s + settings.setup_timeout_s * max(1, node.setup_attempt)
    if (now - node.launched_at).total_seconds() > allowed_s:
        return end(node, f"setup: not done {allowed_s:.0f} s after launch", now, memory)
    key = f"setup:{node.node_name}"
    silent = silent_s(node, now)
    if silent > settings.boot_timeout_s and _asked_in_vain(key, silent, memory, settings):
        return end(node, f"setup: unreachable for {silent_s(node, now):.0f} s", now, memory)
    kind = Kind.START_SETUP if node.setup_job_id is None else Kind.POLL_SETUP
    effect = Effect(kind=kind, key=key, slot_index=node.slot_index, node_name=node.node_name)
    return when_due(effect, memory, now, f"slot {node.slot_index}: setup runs")
