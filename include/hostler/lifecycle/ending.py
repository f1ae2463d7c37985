"""Ends one node: the order is written first, then given; gone is what the cloud calls gone, never what we hope."""

from dataclasses import replace
from datetime import datetime, timedelta

from hostler.cloud.errors import CloudAuthError, CloudError, CloudThrottledError, NodeNotFoundError, NodeNotOursError
from hostler.lifecycle.charge import Charge
from hostler.lifecycle.events import words_of
from hostler.lifecycle.limits import switched_off_at
from hostler.lifecycle.step import Effect
from hostler.model.enums import NodeState
from hostler.model.lease import Intent, Node

AGAIN_S = 20.0
LEAKS = (CloudAuthError, NodeNotOursError)
"""Refusals that a person has to lift: until then the machine runs on."""

AGAIN_CAP_S = 300.0
"""The order to end is given again, without end, after 20 s doubled up to 5 minutes."""


async def end_node(charge: Charge, effect: Effect) -> None:
    """Effect END_NODE."""
    await end_now(charge, charge.node(effect), effect.reason)


async def end_now(charge: Charge, node: Node, reason: str, *, cordon: bool = False) -> Node:
    """Writes the ending, then orders it from the cloud. Never raises a CloudError: what the cloud refuses is tried again.

    Returns:
        The node as stored: ``terminating``, or ``gone`` when the cloud said that it knows the machine no more.
    """
    if node.state is not NodeState.TERMINATING:
        ending = replace(
            node,
            state=NodeState.TERMINATING,
            ending_reason=node.ending_reason or reason,
            is_cordoned=node.is_cordoned or cordon,
        )
        event = charge.event("node.ending", reason, slot_index=node.slot_index, provider_id=node.provider_id)
        node = await charge.write_node("node-ending", ending, event)
    key = f"end:{node.node_name}"
    driver = charge.driver(node.offering.cloud)
    try:
        await charge.call("terminate", lambda: driver.terminate(node.offering.region, node.provider_id))
    except NodeNotOursError as error:
        return await _refused(charge, node, key, error)
    except NodeNotFoundError as error:
        return await _not_found(charge, node, error)
    except CloudError as error:
        return await _refused(charge, node, key, error)
    charge.memory.hold(key, charge.now(), charge.memory.backoff_s(key, AGAIN_S, AGAIN_CAP_S))
    return node


async def _not_found(charge: Charge, node: Node, error: CloudError) -> Node:
    """The cloud knows no such machine: believed only of one that is old enough to be known everywhere."""
    intent = next(intent for intent in charge.view.intents if intent.intent_id == node.intent_id)
    if is_young(intent, charge.now(), charge.memory.list_lag_s):
        charge.memory.hold(f"end:{node.node_name}", charge.now(), 5.0, "a young machine is not listed yet")
        return node
    return await mark_gone(charge, node, f"terminate: {words_of(error)}", forgotten_at(charge, node))


def forgotten_at(charge: Charge, node: Node) -> datetime:
    """Returns when billing ended, as well as can be known, of a machine that the cloud knows no more.

    Clouds forget a machine an hour or so after its end, and the end with it: it was no later than its own switch allowed.
    """
    latest = switched_off_at(charge.view, node) or charge.now()
    return max(min(charge.now(), latest), node.launched_at)


async def _refused(charge: Charge, node: Node, key: str, error: CloudError) -> Node:
    """The machine runs on: visible, and tried again without end."""
    after_s = charge.memory.backoff_s(key, AGAIN_S, AGAIN_CAP_S)
    if isinstance(error, CloudThrottledError) and error.retry_after_s is not None:
        after_s = max(1.0, error.retry_after_s)
    words = f"slot {node.slot_index}: {node.provider_id} could not be ended: {words_of(error)}"
    is_news = charge.memory.notes.get(key) != words
    charge.memory.hold(key, charge.now(), after_s, words)
    suspected = replace(node, is_leak_suspected=node.is_leak_suspected or isinstance(error, LEAKS))
    if not is_news and suspected == node:
        return node  # one line a driver and cause: an hour of refusals is no storm of events
    event = charge.event("node.end_refused", words, slot_index=node.slot_index, retry_after_s=round(after_s))
    stored = await charge.write_node("end-refused", suspected, event)
    if isinstance(error, LEAKS) and not node.is_leak_suspected:
        await charge.fleet.offload(charge.fleet.tell)
    return stored


async def mark_gone(charge: Charge, node: Node, words: str, ended_at: datetime) -> Node:
    """Writes ``gone`` on the cloud's word, which is the evidence."""
    gone = replace(
        node,
        state=NodeState.GONE,
        ended_at=node.ended_at or max(ended_at, node.launched_at),
        is_leak_suspected=False,
        ending_reason=node.ending_reason or f"the cloud took it: {words}",
    )
    event = charge.event("node.gone", words, slot_index=node.slot_index, provider_id=node.provider_id)
    return await charge.write_node("node-gone", gone, event)


def is_young(intent: Intent, now: datetime, list_lag_s: float) -> bool:
    """True while a machine of this intent may be missing from the cloud's lists although it exists."""
    return now <= intent.settle_after + timedelta(seconds=list_lag_s)
