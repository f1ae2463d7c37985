"""Says in plain words what a lease is doing, what it waits for, why it ended and what it costs."""

from collections.abc import Sequence
from datetime import datetime

from hostler.lifecycle.next_run import newest_job
from hostler.lifecycle.slots import live_nodes, unresolved
from hostler.metrics.cost import accrued_usd, rate_usd_per_hour
from hostler.model.enums import HealthAction, IntentState, JobState, LeaseState, NodeState, Verdict
from hostler.model.lease import Event, LeaseView, Node

LAST_EVENTS = 5


def why(view: LeaseView, events: Sequence[Event], now: datetime | None = None) -> str:
    """Returns a few lines for a person, the most important first. ``events``: the lease's own, oldest first; may be empty.

    Args:
        now: for cost and durations; None takes the time of the last event, or of the lease's beginning.
    """
    at = now or (events[-1].at if events else view.lease.created_at)
    lines = [
        _headline(view),
        *_waits(view, at),
        *_trouble(view),
        *(line for node in live_nodes(view) for line in (_node_line(node), *_health(node))),
        *_job(view),
        _cost(view, at),
    ]
    shown = [event for event in events if event.what != "fence.taken"][-LAST_EVENTS:]
    if shown:
        lines.append("last events:")
        lines += [f"  {event.at:%Y-%m-%d %H:%M:%S} {event.what}: {event.why} (by {event.who})" for event in shown]
    return "\n".join(lines)


def _headline(view: LeaseView) -> str:
    lease = view.lease
    gang = f"{lease.request.node_count} x {lease.request.accelerators_per_node} {lease.request.accelerator}"
    head = f"lease {lease.lease_id} ({gang}, tenant {lease.request.tenant}) is {lease.state}"
    match lease.state:
        case LeaseState.DRAINING:
            return f"{head}: it is let go, because: {lease.release_reason}"
        case LeaseState.RELEASED:
            return f"{head}: everything is gone by the cloud's word; it was let go, because: {lease.release_reason}"
        case LeaseState.UNATTENDED:
            return f"{head}: nobody has driven it since {lease.unattended_since}; a retry, a clear or the reconcile takes it up"
        case _:
            return f"{head}; done so far: {lease.reached or 'nothing'}"


def _waits(view: LeaseView, at: datetime) -> list[str]:
    lease = view.lease
    if lease.wait_reason is None or lease.wait_since is None:
        return []
    return [f"waiting since {(at - lease.wait_since).total_seconds():.0f} s for: {lease.wait_reason}"]


def _trouble(view: LeaseView) -> list[str]:
    lines = []
    if view.lease.failure is not None:
        lines.append(f"first cause of its end: {view.lease.failure}")
    leaks = [node.provider_id for node in view.nodes if node.is_leak_suspected and node.state is not NodeState.GONE]
    if leaks:
        lines.append(f"LEAK SUSPECTED: the cloud denies both look and ending: {', '.join(leaks)}")
    doubts = unresolved(view)
    if doubts:
        lines.append(f"launches without an answer, being looked up: {', '.join(intent.intent_id for intent in doubts)}")
    refused = [intent for intent in view.intents if intent.state is IntentState.REFUSED]
    if refused:
        lines.append(f"{len(refused)} purchases refused; the last: {refused[-1].error_text or refused[-1].error}")
    return lines


def _node_line(node: Node) -> str:
    health = f", health {node.health}" if node.state is NodeState.INITIALIZED else ""
    ending = f", ending because: {node.ending_reason}" if node.ending_reason else ""
    flags = ", cordoned" if node.is_cordoned else ""
    return f"slot {node.slot_index}: {node.provider_id} ({node.offering.key}) is {node.state}{health}{flags}{ending}"


def _health(node: Node) -> list[str]:
    """Returns why its verdict is what it is: reasons, then who saw it, by which document, and what would end it."""
    if node.state is not NodeState.INITIALIZED or node.health is Verdict.HEALTHY:
        return []
    lines = [f"  {reason}" for reason in node.health_reasons]
    told = dict(node.health_evidence)
    if not node.is_health_proven and node.health is Verdict.FAILED:
        lines.append("  not proven yet: one look of one source; it gets no work, and is looked at again")
    if node.health_action is not HealthAction.NONE:
        lines.append(f"  asks for: {node.health_action}{' when no job runs' if 'when' in told else ''}")
    parts = (("seen_by", "seen by"), ("proof", "proof"), ("source", "by"), ("clears_by", "ends with"))
    shown = [f"{words} {told[name]}" for name, words in parts if name in told]
    return [*lines, f"  {'; '.join(shown)}"] if shown else lines


def _job(view: LeaseView) -> list[str]:
    job = newest_job(view)
    if job is None:
        return []
    shipped = "none" if job.shipped_step is None else f"step {job.shipped_step}"
    tail = f"; {job.error}" if job.error and job.state is not JobState.SUCCEEDED else ""
    return [f"job attempt {job.attempt} is {job.state} at step {job.step}; checkpoint in the store: {shipped}{tail}"]


def _cost(view: LeaseView, at: datetime) -> str:
    spent, rate = accrued_usd(view, at), rate_usd_per_hour(view)
    return f"cost: {spent:.2f} USD so far of at most {view.lease.request.max_cost_usd} USD, {rate:.2f} USD per hour now"
