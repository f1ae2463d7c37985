"""Which leases are proved idle, and in which order they go. Pure.

A node is idle when every sample of every accelerator in the whole window is below the limit, no process holds an accelerator,
no job of the agent runs, nobody is logged in and the host's CPU rests. Whatever is unknown, stale, missing or told under MIG
as N/A counts as busy. Source: skypilot-org/skypilot#10628, dstackai/dstack#2719.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hostler.health.load import Load, Sample, load_of
from hostler.lifecycle.next_end import is_backup_due
from hostler.lifecycle.next_run import ACTIVE_JOB, newest_job
from hostler.lifecycle.policies import ScaleDownPolicy
from hostler.lifecycle.slots import has_reached, live_nodes, unresolved
from hostler.metrics.cost import rate_usd_per_hour
from hostler.model.enums import LeaseState, NodeState, Phase
from hostler.model.lease import LeaseView, Node
from hostler.reach.port import LoadRecord, LoadSample

BUSY_CPU_RATIO: Final = 0.10
"""A host that uses more of its CPU time works on something: a rule of ours, above what an idle system's own services take."""

UNDRIVEN_S: Final = 900
"""A lease that nobody has driven for so long waits for nothing: as ``reap`` has it."""

Loads = Mapping[str, LoadRecord | str]
"""By node name: what the node did, or why it cannot be told, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idleness:
    """What is to be said of a lease.

    Attributes:
        is_idle: every node is proved idle and nothing needs them. reason: words for a person; why not, or on what evidence.
        order: least valuable first when sorted.
    """

    view: LeaseView
    is_idle: bool
    reason: str
    order: tuple[bool, datetime, float, str]


def judge_lease(view: LeaseView, loads: Loads, policy: ScaleDownPolicy, now: datetime, driven_s: float) -> Idleness:
    """Returns whether the lease may go.

    Args:
        loads: of the lease's nodes; one that is missing is unknown. driven_s: seconds since somebody last drove the lease.
    """
    reason = why_needed(view, driven_s)
    if reason is None:
        doubts = [f"{node.node_name}: {words}" for node in live_nodes(view) if (words := why_busy(node, loads, policy, now))]
        reason = "; ".join(doubts[:3]) or None
    words = reason or (
        f"every sample of {sum(node.offering.accelerator_count for node in live_nodes(view))} accelerators in "
        f"{policy.idle_after_s:.0f} s is idle; no process, no job, no login on {len(live_nodes(view))} nodes"
    )
    return Idleness(view=view, is_idle=reason is None, reason=words, order=_order(view))


def why_needed(view: LeaseView, driven_s: float) -> str | None:
    """Returns what the lease's rows say against ending it; None when nothing does."""
    lease, job = view.lease, newest_job(view)
    if lease.state not in {LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.UNATTENDED}:
        return f"the lease is {lease.state}"
    if not live_nodes(view):
        return "it has no nodes"
    if unresolved(view):
        return "a launch has no answer yet"
    if job is not None and job.state in ACTIVE_JOB:
        return f"its job is {job.state}"
    is_over = has_reached(lease, Phase.RUN) or lease.failure or lease.keep_until or driven_s > UNDRIVEN_S
    return None if is_over else "its run is under way"


def why_busy(node: Node, loads: Loads, policy: ScaleDownPolicy, now: datetime) -> str | None:
    """Returns why a node is not proved idle, in words; None when it is."""
    if node.state is not NodeState.INITIALIZED:
        return f"is {node.state}"
    record = loads.get(node.node_name, "was not asked")
    if isinstance(record, str):
        return f"unknown: {record}"
    samples = samples_of(record, node.offering.accelerator_count, now)
    load = load_of(samples, now=now, window_s=policy.idle_after_s, every_s=record.every_s)
    if load is Load.IDLE:
        return None
    return f"{load}: {_evidence(record, node.offering.accelerator_count, policy)}"


def samples_of(record: LoadRecord, accelerator_count: int, now: datetime) -> tuple[Sample, ...]:
    """Returns the agent's samples as the judge of loads takes them; accelerators that it did not tell of are not known."""
    return tuple(
        Sample(
            at=now - timedelta(seconds=one.age_s),
            utilisation_ratios=_padded(one.utilisation_ratios, accelerator_count),
            is_in_use=is_in_use(one),
        )
        for one in record.samples
    )


def is_in_use(sample: LoadSample) -> bool | None:
    """Returns whether somebody uses the node; None when that cannot be told. One sign of use is enough, whatever else is unknown."""
    counts = (sample.process_count, sample.login_count, sample.job_count)
    if any(counts) or (sample.cpu_ratio is not None and sample.cpu_ratio >= BUSY_CPU_RATIO):
        return True
    return None if None in counts or sample.cpu_ratio is None else False


def _padded(ratios: tuple[float | None, ...], count: int) -> tuple[float | None, ...]:
    return ratios + (None,) * (count - len(ratios)) if ratios else ()


def _evidence(record: LoadRecord, count: int, policy: ScaleDownPolicy) -> str:
    """Returns what the samples show, for a person."""
    mine = [one for one in record.samples if one.age_s <= policy.idle_after_s]
    if not mine:
        return "no sample in the window"
    ratios = [ratio for one in mine for ratio in _padded(one.utilisation_ratios, count)]
    known = [ratio for ratio in ratios if ratio is not None]
    untold = len(ratios) - len(known) + sum(not one.utilisation_ratios for one in mine)
    last = mine[-1]
    told = f"highest utilisation {max(known):.2f}" if known else "no utilisation told"
    return (
        f"{len(mine)} samples over {mine[0].age_s:.0f} s, the last {last.age_s:.0f} s old, {told}, {untold} not told; last seen: "
        f"{_n(last.process_count)} processes, {_n(last.job_count)} jobs, {_n(last.login_count)} logins, CPU {_n(last.cpu_ratio)}"
    )


def _n(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _order(view: LeaseView) -> tuple[bool, datetime, float, str]:
    """Least valuable first: nothing to save, then the one whose work ended first, then the dearest."""
    job = newest_job(view)
    since = (job.ended_at if job is not None else None) or view.lease.created_at
    return is_backup_due(view), since, -float(rate_usd_per_hour(view)), view.lease.lease_id
