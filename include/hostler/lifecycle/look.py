"""Looks at the cloud and brings the rows up to it: what is there, what is gone, and what came of launches without an answer."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from hostler.cloud.driver import Interruption, Machine, MachineState
from hostler.cloud.errors import CloudAuthError, CloudError, CloudThrottledError, NodeNotFoundError, NodeNotOursError
from hostler.cloud.tags import INTENT, LEASE
from hostler.lifecycle.adopt import adopt
from hostler.lifecycle.billing import billed
from hostler.lifecycle.charge import Charge
from hostler.lifecycle.choice import NOTHING
from hostler.lifecycle.clocks import end_time, launch_time
from hostler.lifecycle.denied import note_denied
from hostler.lifecycle.ending import forgotten_at, is_young
from hostler.lifecycle.events import words_of
from hostler.lifecycle.slots import has_reached, live_nodes
from hostler.lifecycle.step import Effect
from hostler.model.enums import IntentState, NodeState, Phase
from hostler.model.lease import Event, Intent, Node, Record

MISSES = 3
"""Lists in a row that must miss a machine before it is asked for by its id; only that answer makes it gone."""

INTERRUPTION, REBALANCE = "interruption", "rebalance"
IMMINENT_S = 300.0
"""A machine that the cloud takes within this is left at once: a spot notice comes two minutes before."""

ALIVE = frozenset({MachineState.PENDING, MachineState.RUNNING})


async def look(charge: Charge, effect: Effect) -> None:
    """Effect LOOK: one list per region of the lease's intents, then one write."""
    regions = sorted({(intent.offering.cloud, intent.offering.region) for intent in charge.view.intents})
    began_at = charge.now()
    answers = await asyncio.gather(*(_list(charge, *region) for region in regions), return_exceptions=True)
    lists: dict[tuple[str, str], tuple[Machine, ...]] = {}
    for region, answer in zip(regions, answers, strict=True):
        if isinstance(answer, CloudError):
            _put_off(charge, effect.key, answer)
            if isinstance(answer, CloudAuthError):
                await note_denied(charge.fleet, charge.fence.holder, "/".join(region), answer, lease_id=charge.fence.lease_id)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            lists[region] = answer
    await _bring_up(charge, lists, began_at)
    await _hear_notices(charge, lists)
    if len(lists) == len(regions):
        charge.memory.looked_at = began_at
        charge.memory.clear(effect.key)


async def _list(charge: Charge, cloud: str, region: str) -> tuple[Machine, ...]:
    driver = charge.driver(cloud)
    charge.memory.call_budget_s = max(charge.memory.call_budget_s, driver.call_budget_s)
    charge.memory.list_lag_s = max(charge.memory.list_lag_s, driver.list_lag_s)
    return await charge.call("list", lambda: driver.list_nodes(region, {LEASE: charge.lease.lease_id}))


async def _hear_notices(charge: Charge, lists: dict[tuple[str, str], tuple[Machine, ...]]) -> None:
    """Asks, while a job may run, which machines the cloud will take; what it does not answer is no verdict."""
    names = {node.provider_id: node for node in live_nodes(charge.view) if node.state is NodeState.INITIALIZED}
    if not names:
        return
    for cloud, region in sorted(lists):
        driver = charge.driver(cloud)
        try:
            notices = await charge.call("interruptions", lambda driver=driver, region=region: driver.list_interruptions(region))  # type: ignore[misc]
        except CloudError:
            continue
        for notice in notices:
            await _note(charge, names.get(notice.provider_id), notice)


async def _note(charge: Charge, node: Node | None, notice: Interruption) -> None:
    """Keeps a notice for this driver, and writes it once for the record."""
    if node is None or notice.provider_id in charge.memory.taken:
        return
    if _is_imminent(notice, charge.now()):
        charge.memory.taken.add(notice.provider_id)
    if notice.provider_id in charge.memory.notices:
        return
    words = f"{notice.kind} announced for {notice.takes_effect_at or 'an unknown time'}"
    charge.memory.notices[notice.provider_id] = words
    event = charge.event("node.interruption_noticed", words, slot_index=node.slot_index, provider_id=notice.provider_id)
    await charge.fleet.offload(lambda: charge.fleet.ledger.append_events([event]))


def _is_imminent(notice: Interruption, now: datetime) -> bool:
    """True when the machine goes so soon that its job is better moved now."""
    if notice.kind == REBALANCE:
        return False
    at = notice.takes_effect_at
    return notice.kind == INTERRUPTION if at is None else at <= now + timedelta(seconds=IMMINENT_S)


def _put_off(charge: Charge, key: str, error: CloudError) -> None:
    """A look that was refused changes no verdict. Denied on the way up, it ends the lease early with the cloud's own words."""
    after_s = charge.memory.backoff_s(key, 5.0, 120.0)
    if isinstance(error, CloudThrottledError) and error.retry_after_s is not None:
        after_s = max(1.0, error.retry_after_s)
    charge.memory.hold(key, charge.now(), after_s, f"the cloud cannot be asked: {words_of(error)}")
    if isinstance(error, CloudAuthError) and not has_reached(charge.lease, Phase.LAUNCH):
        charge.memory.fatal = f"look-up: {words_of(error)}"


async def _bring_up(charge: Charge, lists: dict[tuple[str, str], tuple[Machine, ...]], began_at: datetime) -> None:
    """Compares rows and machines, and writes all differences at once."""
    found: dict[str, list[Machine]] = {}
    for machine in (machine for machines in lists.values() for machine in machines):
        charge.memory.machines[machine.provider_id] = machine.state
        found.setdefault(machine.tags.get(INTENT, ""), []).append(machine)
    records: list[Record] = []
    events: list[Event] = []
    for intent in charge.view.intents:
        if (intent.offering.cloud, intent.offering.region) in lists and intent.state is not IntentState.OWNED:
            rows, lines = _settle(charge, intent, found.get(intent.intent_id, []), began_at)
            records += rows
            events += lines
    by_id = {machine.provider_id: machine for machines in found.values() for machine in machines}
    for node in live_nodes(charge.view):
        if (node.offering.cloud, node.offering.region) not in lists:
            continue
        seen = by_id.get(node.provider_id)
        after, words = await _missed(charge, node) if seen is None else _seen(charge, node, seen)
        if after is not node:
            records.append(after)
        if words:
            what = "node.gone" if after.state is NodeState.GONE else f"node.{after.state}"
            events.append(charge.event(what, words, slot_index=node.slot_index, provider_id=node.provider_id))
    if records or events:
        await charge.write("look", records, events)


def _settle(charge: Charge, intent: Intent, machines: list[Machine], began_at: datetime) -> tuple[list[Record], list[Event]]:
    """An intent without a known machine: adopted when its machine is there, refused when nothing can come of it any more."""
    machine = next((m for m in machines if m.state in ALIVE), machines[0] if machines else None)
    if machine is not None:
        owned, node, event = adopt(charge, intent, machine)
        return [owned, node], [event]
    is_asked = intent.state is IntentState.OPEN and intent.fence == charge.fence.token
    deadline = intent.settle_after + timedelta(seconds=charge.driver(intent.offering.cloud).list_lag_s)
    if intent.state is IntentState.REFUSED or is_asked or began_at <= deadline:
        return [], []
    words = f"slot {intent.slot_index}: no machine by its tags after {deadline:%H:%M:%S} UTC, nothing came of the launch"
    event = charge.event("intent.refused", words, slot_index=intent.slot_index, intent_id=intent.intent_id)
    return [replace(intent, state=IntentState.REFUSED, error=NOTHING, error_text=words)], [event]


def _launched_at(charge: Charge, node: Node, machine: Machine) -> datetime:
    """Returns the launch by the ledger's clock; once known it moves only to an earlier time that the cloud names."""
    intent = next(intent for intent in charge.view.intents if intent.intent_id == node.intent_id)
    return min(node.launched_at, launch_time(machine, intent, charge.now()))


def _seen(charge: Charge, node: Node, machine: Machine) -> tuple[Node, str]:
    """Returns the node brought up to what the cloud shows, and words when its state moved."""
    now = charge.now()
    launched_at = node.launched_at if node.stopped_s or node.stopped_at else _launched_at(charge, node, machine)
    fresh = replace(node, address=machine.address or node.address, launched_at=launched_at, misses=0)
    fresh = billed(fresh, machine, now)
    reason = machine.state_reason or f"the cloud shows it {machine.state}"
    match machine.state:
        case MachineState.TERMINATED:
            ended_at = end_time(machine, fresh.launched_at, now)
            why = node.ending_reason or f"the cloud took it: {reason}"
            return replace(fresh, state=NodeState.GONE, ended_at=ended_at, ending_reason=why, is_leak_suspected=False), reason
        case MachineState.TERMINATING if node.state is not NodeState.TERMINATING:
            why = node.ending_reason or f"the cloud takes it: {reason}"
            return replace(fresh, state=NodeState.TERMINATING, ending_reason=why), why
        case MachineState.STOPPING if node.state not in {NodeState.STOPPING, NodeState.STOPPED, NodeState.TERMINATING}:
            return replace(fresh, state=NodeState.STOPPING), reason
        case MachineState.STOPPED if node.state not in {NodeState.STOPPED, NodeState.TERMINATING}:
            return replace(fresh, state=NodeState.STOPPED), reason
    # A row is written only for news: 500 nodes that are well cost no write.
    return (node, "") if fresh == node else (replace(fresh, last_seen_at=now), "")


async def _missed(charge: Charge, node: Node) -> tuple[Node, str]:
    """A list did not show the node. Old ones are asked for by id; only "no such machine" makes it gone."""
    intent = next(intent for intent in charge.view.intents if intent.intent_id == node.intent_id)
    driver = charge.driver(node.offering.cloud)
    if is_young(intent, charge.now(), driver.list_lag_s):
        return node, ""
    missed = replace(node, misses=node.misses + 1)
    if missed.misses < MISSES:
        return missed, ""
    try:
        machine = await charge.call("get", lambda: driver.get_node(node.offering.region, node.provider_id))
    except NodeNotOursError:
        return replace(missed, is_leak_suspected=True), ""
    except NodeNotFoundError as error:
        words = f"{MISSES} lists missed it and the cloud knows it no more: {words_of(error)}"
        why = node.ending_reason or f"the cloud took it: {words}"
        ended_at = forgotten_at(charge, node)
        return replace(missed, state=NodeState.GONE, ended_at=ended_at, ending_reason=why, is_leak_suspected=False), words
    except CloudError:
        return missed, ""
    return _seen(charge, node, machine)


async def check_node(charge: Charge, node: Node) -> Node:
    """Asks the cloud for one node and writes what it says. After any failure on a node, this comes first.

    Returns:
        The node as stored; unchanged when the cloud shows it running, or cannot be asked.
    """
    driver = charge.driver(node.offering.cloud)
    try:
        machine = await charge.call("get", lambda: driver.get_node(node.offering.region, node.provider_id))
    except NodeNotFoundError:
        return node  # the lists decide with their misses; a young machine may be missing here
    except CloudError:
        return node
    after, words = _seen(charge, node, machine)
    if not words:
        return node
    event = charge.event(f"node.{after.state}", words, slot_index=node.slot_index, provider_id=node.provider_id)
    return await charge.write_node("node-checked", after, event)
