"""Looks at a lease's nodes without changing anything: are they ready, are they healthy?"""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.slots import slots_of
from hostler.model.enums import LeaseState, NodeState, Verdict
from hostler.model.lease import LeaseView, Node
from hostler.reach.port import ReachError


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What was seen of a gang.

    Attributes:
        is_met: every node of the gang is as wanted. is_hopeless: the lease is over, or a node failed: waiting does not help.
        reasons: words, one a node or lease that is not as wanted.
    """

    is_met: bool
    is_hopeless: bool
    reasons: tuple[str, ...]


_OVER = frozenset({LeaseState.DRAINING, LeaseState.RELEASED, LeaseState.EXPIRED, LeaseState.LOST})


def nodes_ready(view: LeaseView) -> Condition:
    """Says whether every slot has a node that is set up (state ``initialized``)."""
    if over := _over(view):
        return over
    reasons = []
    for slot in slots_of(view):
        if slot.node is None:
            reasons.append(f"slot {slot.index}: no node")
        elif slot.node.state is not NodeState.INITIALIZED:
            reasons.append(f"{slot.node.node_name}: {slot.node.state}")
    return Condition(is_met=not reasons, is_hopeless=False, reasons=tuple(reasons))


async def nodes_healthy(fleet: Fleet, lease_id: str, max_age_s: float) -> Condition:
    """Says whether every node is healthy by a probe that is at most ``max_age_s`` old; probes those whose last one is older.

    A node that does not answer is ``unknown``: neither healthy nor failed.

    Raises:
        LeaseNotFoundError: no such lease. LedgerUnavailableError: ask again later.
    """
    view = await asyncio.to_thread(fleet.ledger.view, lease_id)
    ready = nodes_ready(view)
    if not ready.is_met:
        return ready
    now = await asyncio.to_thread(fleet.ledger.now)
    nodes = [slot.node for slot in slots_of(view) if slot.node is not None]
    verdicts = await asyncio.gather(*(_verdict(fleet, node, now, max_age_s) for node in nodes))
    ill = [(node, *found) for node, found in zip(nodes, verdicts, strict=True) if found[0] is not Verdict.HEALTHY]
    reasons = tuple(f"{node.node_name}: {verdict}: {', '.join(words)}" for node, verdict, words in ill)
    return Condition(is_met=not ill, is_hopeless=any(entry[1] is Verdict.FAILED for entry in ill), reasons=reasons)


async def _verdict(fleet: Fleet, node: Node, now: datetime, max_age_s: float) -> tuple[Verdict, tuple[str, ...]]:
    if node.probed_at is not None and (now - node.probed_at).total_seconds() <= max_age_s:
        return node.health, node.health_reasons
    try:
        document = await fleet.nodes.probe(node)
    except ReachError as error:
        return Verdict.UNKNOWN, (str(error),)
    offering = node.offering
    report = fleet.seams.judge(document, accelerator=offering.accelerator, accelerator_count=offering.accelerator_count)
    return report.verdict, report.reasons


def _over(view: LeaseView) -> Condition | None:
    lease = view.lease
    if lease.failure is None and lease.state not in _OVER:
        return None
    words = lease.failure or lease.release_reason or f"the lease is {lease.state}"
    return Condition(is_met=False, is_hopeless=True, reasons=(words,))
