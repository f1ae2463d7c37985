"""Decisions about the job: start, poll, break off when the gang is not whole, start again from the last shipped step. Pure."""

from datetime import datetime

from hostler.lifecycle.fleet import LifecycleSettings
from hostler.lifecycle.limits import limit_reached
from hostler.lifecycle.next_fill import prepare
from hostler.lifecycle.next_slot import end, look_step, silent_s
from hostler.lifecycle.slots import slots_of
from hostler.lifecycle.step import Effect, Kind, Memory, Step, Wait, when_due
from hostler.model.enums import JobState, NodeState, Phase
from hostler.model.lease import Job, LeaseView, Node

ACTIVE_JOB = frozenset({JobState.STARTING, JobState.RUNNING})
WORKING = frozenset({NodeState.INITIALIZED, NodeState.UNREACHABLE})
SPARE_ATTEMPTS = 3
"""Attempts of the job beyond those that lost nodes explain."""


def newest_job(view: LeaseView) -> Job | None:
    """Returns the last attempt; None before the first."""
    return view.jobs[-1] if view.jobs else None


def is_job_done(view: LeaseView) -> bool:
    """True when all ranks of the last attempt succeeded."""
    job = newest_job(view)
    return job is not None and job.state is JobState.SUCCEEDED


def lost_after_s(job: Job, silent: int, settings: LifecycleSettings) -> float:
    """Returns how long a node may be silent before it is given up, in seconds.

    When the whole gang is silent at once, it is more likely our own network: then a node gets the patience of a boot. One
    signal is not enough to end every node of a job that may be working.
    """
    short_s = 2 * settings.heartbeat_timeout_s
    return max(short_s, settings.boot_timeout_s) if silent == len(job.node_names) else short_s


def next_run(view: LeaseView, now: datetime, settings: LifecycleSettings, memory: Memory) -> tuple[Step, ...]:
    """Returns what the job needs; empty when it is done and nothing keeps the nodes."""
    job = newest_job(view)
    if job is not None and job.state is JobState.SUCCEEDED:
        return _keep(view, now, settings, memory)
    if job is not None and job.state in ACTIVE_JOB:
        look = look_step(view, now, settings, memory)
        return (look,) if isinstance(look, Effect) else _attend(view, job, now, settings, memory)
    steps = prepare(view, now, settings, memory, Phase.VALIDATE)
    if steps:
        return steps
    most = settings.slot_replacements * view.lease.request.node_count + SPARE_ATTEMPTS
    if len(view.jobs) >= most:
        last = job.error if job is not None else ""
        return (Effect(kind=Kind.FAIL, key="fail", reason=f"the job broke off {len(view.jobs)} times; last: {last}"),)
    return (Effect(kind=Kind.OPEN_JOB, key="open-job"),)


def _keep(view: LeaseView, now: datetime, settings: LifecycleSettings, memory: Memory) -> tuple[Step, ...]:
    until = view.lease.keep_until
    if until is None or now >= until or limit_reached(view, now) is not None:
        return ()
    if memory.left_s("tend", now) <= 0:
        return (Effect(kind=Kind.TEND, key="tend"),)
    left_s = (until - now).total_seconds()
    return (
        Wait(
            reason=f"the job is done; nodes are kept until {until:%H:%M:%S} UTC", retry_after_s=min(left_s, 6 * settings.poll_s)
        ),
    )


def _attend(view: LeaseView, job: Job, now: datetime, settings: LifecycleSettings, memory: Memory) -> tuple[Step, ...]:
    """A job is under way: the gang must be whole, whatever the job says of itself."""
    nodes = {slot.node.node_name: slot.node for slot in slots_of(view) if slot.node is not None}
    lost = [name for name in job.node_names if name not in nodes or nodes[name].state not in WORKING]
    if lost or len(job.node_names) != view.lease.request.node_count:
        return (Effect(kind=Kind.BREAK_JOB, key="break-job", reason=f"node lost: {_words(lost, view)}"),)
    silent = [nodes[name] for name in job.node_names if silent_s(nodes[name], now) > settings.heartbeat_timeout_s]
    given_up_s = lost_after_s(job, len(silent), settings)
    dead = [node for node in silent if node.state is NodeState.UNREACHABLE and silent_s(node, now) > given_up_s]
    # Only once this driver has asked, too: while nobody drove the lease nobody asked, and that silence is not the node's.
    if dead and "job" in memory.not_before:
        return tuple(end(node, f"unreachable for {silent_s(node, now):.0f} s", now, memory) for node in dead)
    kind = Kind.ATTACH_JOB if job.state is JobState.STARTING else Kind.POLL_JOB
    return (when_due(Effect(kind=kind, key="job"), memory, now, _progress(job)),)


def _words(lost: list[str], view: LeaseView) -> str:
    reasons = {node.node_name: node.ending_reason or node.state.value for node in view.nodes}
    return ", ".join(f"{name} ({reasons.get(name, 'no such node')})" for name in lost) or "the gang is not whole"


def _progress(job: Job) -> str:
    shipped = "none yet" if job.shipped_step is None else f"step {job.shipped_step}"
    return f"the job runs: attempt {job.attempt}, step {job.step}, checkpoint shipped: {shipped}"


def ready_nodes(view: LeaseView) -> tuple[Node, ...]:
    """Returns the gang's current nodes by slot: its ranks."""
    return tuple(slot.node for slot in slots_of(view) if slot.node is not None)
