"""Phase ``validate``: the probe's document is judged; only a fit node works, an unknown one is not fit.

A node that is failed by two sources or by enough looks is replaced at once; one look of one source is looked at again first.
"""

from dataclasses import replace

from hostler.lifecycle.charge import Charge
from hostler.lifecycle.ending import end_now
from hostler.lifecycle.events import shorten, words_of
from hostler.lifecycle.look import check_node
from hostler.lifecycle.next_slot import FIT
from hostler.lifecycle.step import Effect
from hostler.model.enums import NodeState, Verdict
from hostler.model.health import HealthReport
from hostler.model.lease import Node
from hostler.reach.port import ReachError

UNKNOWN_TRIES = 3
"""A probe that says nothing is repeated; then the node, which has no work yet, is replaced."""

UNPROVEN_TRIES = 6
"""The same for a fault that only one look of one source tells of: five looks can prove it, or three good ones close it."""


async def probe(charge: Charge, effect: Effect) -> None:
    """Effect PROBE."""
    node, request = charge.node(effect), charge.lease.request
    try:
        document = await charge.ask("probe", lambda: charge.fleet.nodes.probe(node))
    except ReachError as error:
        await _no_answer(charge, effect, node, error)
        return
    report = charge.fleet.seams.judge(
        document,
        accelerator=request.accelerator,
        accelerator_count=request.accelerators_per_node,
        now=charge.now(),
        memory=node.health_memory,
    )
    await _take(charge, effect, node, report)


async def _no_answer(charge: Charge, effect: Effect, node: Node, error: ReachError) -> None:
    now, settings = charge.now(), charge.fleet.settings
    charge.memory.hold(effect.key, now, settings.poll_s, f"slot {node.slot_index}: {words_of(error)}")
    node = await check_node(charge, node)
    silent_s = (now - (node.heartbeat_at or node.launched_at)).total_seconds()
    if node.state is NodeState.INITIALIZED and silent_s > settings.heartbeat_timeout_s:
        event = charge.event("node.unreachable", words_of(error), slot_index=node.slot_index)
        await charge.write_node("node-unreachable", replace(node, state=NodeState.UNREACHABLE), event)


def with_report(node: Node, report: HealthReport) -> Node:
    """Returns the node with a verdict, its evidence and its memory."""
    return replace(
        node,
        health=report.verdict,
        health_reasons=report.reasons,
        health_action=report.action,
        is_health_proven=report.is_confirmed,
        health_evidence=report.evidence,
        health_memory=report.memory,
    )


async def _take(charge: Charge, effect: Effect, node: Node, report: HealthReport) -> None:
    now = charge.now()
    is_open = report.verdict not in FIT and not (report.verdict is Verdict.FAILED and report.is_confirmed)
    tries = node.unknown_probes + 1 if is_open else 0
    judged = replace(with_report(node, report), probed_at=now, heartbeat_at=now, unknown_probes=tries)
    words = "; ".join(report.reasons) or report.verdict.value
    event = charge.event(
        "node.probed",
        f"{report.verdict}: {words}",
        slot_index=node.slot_index,
        provider_id=node.provider_id,
        **dict(report.evidence),
    )
    stored = await charge.write_node("node-probed", judged, event)
    if report.verdict in FIT:
        charge.memory.clear(effect.key)
        return
    is_unknown = report.verdict is Verdict.UNKNOWN
    if is_open and tries < (UNKNOWN_TRIES if is_unknown else UNPROVEN_TRIES):
        certain = "unknown" if is_unknown else "failed, not proven yet"
        charge.memory.hold(effect.key, now, charge.fleet.settings.poll_s, f"slot {node.slot_index}: health {certain}: {words}")
        return
    stored = await check_node(charge, stored)
    if stored.state is NodeState.INITIALIZED:
        await end_now(charge, stored, shorten(f"validate: {report.verdict}: {words}"), cordon=True)
