"""Looks at a lease's nodes without changing anything: are they ready, are they healthy?"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from hostler.lifecycle.events import make_event
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.slots import slots_of
from hostler.model.enums import LeaseState, NodeState, Verdict
from hostler.model.health import HealthReport
from hostler.model.lease import LeaseView, Node
from hostler.reach.port import ReachError


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What was seen of a gang.

    Attributes:
        is_met: every node of the gang is as wanted.
        is_hopeless: the lease is over, or a node failed and that is proven: waiting does not help.
        reasons: words, one a node or lease that is not as wanted.
        is_doubtful: a node failed by one look of one source: another look will tell.
    """

    is_met: bool
    is_hopeless: bool
    reasons: tuple[str, ...]
    is_doubtful: bool = False


@dataclass(slots=True)
class Observer:
    """What one watcher remembers of nodes between its looks, by node name; a new one begins with what the rows remember."""

    who: str = "observer"
    reports: dict[str, HealthReport] = field(default_factory=dict)


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


async def nodes_healthy(fleet: Fleet, lease_id: str, max_age_s: float, observer: Observer | None = None) -> Condition:
    """Says whether every node is healthy by a probe that is at most ``max_age_s`` old; probes those whose last one is older.

    A node that does not answer is ``unknown``: neither healthy nor failed. A verdict that differs from the last one is
    written into the record with its evidence; the rows stay as they are.

    Args:
        observer: remembers the looks, so that several of them can prove a fault; None for a single look.

    Raises:
        LeaseNotFoundError: no such lease. LedgerUnavailableError: ask again later.
    """
    mine = observer or Observer()
    view = await fleet.offload(lambda: fleet.ledger.view(lease_id))
    ready = nodes_ready(view)
    if not ready.is_met:
        return ready
    now = await fleet.offload(fleet.ledger.now)
    nodes = [slot.node for slot in slots_of(view) if slot.node is not None]
    reports = await asyncio.gather(*(_report(fleet, node, now, max_age_s, mine) for node in nodes))
    ill = [(node, found) for node, found in zip(nodes, reports, strict=True) if found.verdict is not Verdict.HEALTHY]
    failed = [found for _node, found in ill if found.verdict is Verdict.FAILED]
    return Condition(
        is_met=not ill,
        is_hopeless=any(found.is_confirmed for found in failed),
        reasons=tuple(f"{node.node_name}: {found.verdict}: {', '.join(found.reasons)}" for node, found in ill),
        is_doubtful=any(not found.is_confirmed for found in failed),
    )


async def _report(fleet: Fleet, node: Node, now: datetime, max_age_s: float, observer: Observer) -> HealthReport:
    last = observer.reports.get(node.node_name) or _row_report(node)
    if node.probed_at is not None and (now - node.probed_at).total_seconds() <= max_age_s:
        return _row_report(node)
    try:
        document = await fleet.nodes.probe(node)
    except ReachError as error:
        return HealthReport(verdict=Verdict.UNKNOWN, reasons=(str(error),), memory=last.memory)
    offering = node.offering
    report = fleet.seams.judge(
        document,
        accelerator=offering.accelerator,
        accelerator_count=offering.accelerator_count,
        now=now,
        memory=last.memory,
    )
    observer.reports[node.node_name] = report
    if (report.verdict, report.is_confirmed, report.action) != (last.verdict, last.is_confirmed, last.action):
        await _record(fleet, node, report, observer.who)
    return report


def _row_report(node: Node) -> HealthReport:
    return HealthReport(
        verdict=node.health,
        reasons=node.health_reasons,
        action=node.health_action,
        is_confirmed=node.is_health_proven,
        evidence=node.health_evidence,
        memory=node.health_memory,
    )


async def _record(fleet: Fleet, node: Node, report: HealthReport, who: str) -> None:
    words = "; ".join(report.reasons) or report.verdict.value
    event = make_event(
        node.lease_id,
        who,
        "node.health_seen",
        f"{report.verdict}: {words}",
        slot_index=node.slot_index,
        provider_id=node.provider_id,
        **dict(report.evidence),
    )
    await fleet.offload(lambda: fleet.ledger.append_events([event]))


def _over(view: LeaseView) -> Condition | None:
    lease = view.lease
    if lease.failure is None and lease.state not in _OVER:
        return None
    words = lease.failure or lease.release_reason or f"the lease is {lease.state}"
    return Condition(is_met=False, is_hopeless=True, reasons=(words,))
