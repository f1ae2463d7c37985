"""Decisions on the way down: backup, and the release that stays open until the cloud has said that all is gone. Pure."""

from datetime import datetime, timedelta

from hostler.lifecycle.fleet import LifecycleSettings
from hostler.lifecycle.next_run import ACTIVE_JOB, newest_job
from hostler.lifecycle.next_slot import OBSERVE_TEXT, end
from hostler.lifecycle.slots import has_reached, live_nodes, unresolved
from hostler.lifecycle.step import Done, Effect, Fail, Kind, Memory, Step, Wait, when_due
from hostler.model.enums import FleetMode, LeaseState, NodeState, Phase
from hostler.model.lease import LeaseView, Node

SEAL_TRIES = 5
SEAL_TRIES_IN_RELEASE = 2
"""Letting go is not held up by a backup store that is down: machines cost, and the agent has shipped while the job ran."""

ASKABLE = frozenset({NodeState.REGISTERED, NodeState.INITIALIZED, NodeState.UNREACHABLE})


def askable_nodes(view: LeaseView) -> tuple[Node, ...]:
    """Returns nodes that may answer."""
    return tuple(node for node in view.nodes if node.state in ASKABLE)


def is_backup_due(view: LeaseView) -> bool:
    """True while work was done that no verified backup, made after the last job ended, holds."""
    job = newest_job(view)
    if job is None:
        return False
    ended_at = job.ended_at
    return not any(backup.is_verified and ended_at is not None and backup.sealed_at >= ended_at for backup in view.backups)


def next_backup(  # noqa: PLR0911 - one return a stage reads best
    view: LeaseView, now: datetime, settings: LifecycleSettings, memory: Memory
) -> tuple[Step, ...]:
    """Returns what the backup needs; works on failed leases too."""
    job = newest_job(view)
    if not is_backup_due(view):
        if has_reached(view.lease, Phase.RUN) and not has_reached(view.lease, Phase.BACKUP):
            return (Effect(kind=Kind.MARK, key="mark:backup", phase=Phase.BACKUP),)
        return (Done(phase=Phase.BACKUP),)
    if view.lease.state is LeaseState.RELEASED:
        return (Fail(reason="the lease is released and its backup was never sealed: the nodes cannot be asked any more"),)
    if job is not None and job.state in ACTIVE_JOB and settings.mode is FleetMode.OBSERVE:
        return (Fail(reason=OBSERVE_TEXT, is_permanent=False),)
    if job is not None and job.state in ACTIVE_JOB:
        return (Effect(kind=Kind.BREAK_JOB, key="break-job", reason=view.lease.failure or "the run has ended"),)
    if memory.tries.get("seal", 0) >= SEAL_TRIES:
        return (Fail(reason=f"backup: {memory.notes.get('seal', '')}", is_permanent=False),)
    return (when_due(Effect(kind=Kind.SEAL, key="seal"), memory, now, "the backup store is tried again"),)


def next_release(  # noqa: PLR0911 - one return a stage reads best
    view: LeaseView, now: datetime, settings: LifecycleSettings, memory: Memory
) -> tuple[Step, ...]:
    """Returns what the release needs; Done only once the cloud has said that everything is gone."""
    lease, job = view.lease, newest_job(view)
    if lease.state is LeaseState.RELEASED:
        return (Done(phase=Phase.RELEASE),)
    if settings.mode is FleetMode.OBSERVE and (live_nodes(view) or unresolved(view)):
        return (Fail(reason=OBSERVE_TEXT, is_permanent=False),)
    if lease.state is not LeaseState.DRAINING:
        return (Effect(kind=Kind.DRAIN, key="drain", reason=lease.failure or "the run has ended"),)
    if job is not None and job.state in ACTIVE_JOB:
        return (Effect(kind=Kind.BREAK_JOB, key="break-job", reason=lease.release_reason or "release"),)
    if is_backup_due(view) and askable_nodes(view) and memory.tries.get("seal", 0) < SEAL_TRIES_IN_RELEASE:
        return (Effect(kind=Kind.SEAL, key="seal"),)
    first = tuple(_end(node, lease.release_reason, now, memory) for node in live_nodes(view) if not _is_ordered(node))
    if first:
        return first
    look = _look(view, now, settings, memory)
    if isinstance(look, Effect):
        return (look,)
    orders = [_end(node, lease.release_reason, now, memory) for node in live_nodes(view)]
    again = tuple(order for order in orders if isinstance(order, Effect))
    if again:
        return again
    waits = [*orders, *_doubts(view, now, memory)]
    if look is not None:
        waits.insert(0, look)
    return tuple(waits) or (Effect(kind=Kind.FINISH, key="finish"),)


def _is_ordered(node: Node) -> bool:
    return node.state is NodeState.TERMINATING


def _end(node: Node, reason: str | None, now: datetime, memory: Memory) -> Step:
    return end(node, f"release: {reason or 'the run has ended'}", now, memory)


def _look(view: LeaseView, now: datetime, settings: LifecycleSettings, memory: Memory) -> Effect | Wait | None:
    """Returns the look that is due: also one after the last machine and the last doubt, so that nothing late is missed."""
    if not view.intents:
        return None
    at = memory.looked_at
    if at is not None and not live_nodes(view) and not unresolved(view):
        return None
    effect = Effect(kind=Kind.LOOK, key="look")
    if at is None or (now - at).total_seconds() >= settings.poll_s:
        return when_due(effect, memory, now, "the cloud is asked for the machines")
    left_s = settings.poll_s - (now - at).total_seconds()
    return Wait(reason="the cloud has not said yet that all is gone", retry_after_s=max(1.0, left_s))


def _doubts(view: LeaseView, now: datetime, memory: Memory) -> list[Step]:
    waits: list[Step] = []
    for intent in unresolved(view):
        known_at = intent.settle_after + timedelta(seconds=memory.list_lag_s)
        left_s = max(1.0, (known_at - now).total_seconds())
        words = f"slot {intent.slot_index}: a launch without an answer is looked up until {known_at:%H:%M:%S} UTC"
        waits.append(Wait(reason=words, retry_after_s=left_s))
    return waits
