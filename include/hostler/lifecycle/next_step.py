"""The pure core: from one view of a lease to what is to be done now. No I/O, no clock, no randomness."""

from datetime import datetime

from hostler.lifecycle.fleet import LifecycleSettings
from hostler.lifecycle.limits import limit_reached
from hostler.lifecycle.next_end import next_backup, next_release
from hostler.lifecycle.next_fill import next_acquire, next_plan, prepare
from hostler.lifecycle.next_run import is_job_done, next_run
from hostler.lifecycle.next_slot import OBSERVE_TEXT
from hostler.lifecycle.slots import PHASES, has_reached
from hostler.lifecycle.step import Done, Effect, Fail, Kind, Memory, Step
from hostler.model.enums import FleetMode, LeaseState, Phase
from hostler.model.lease import Lease, LeaseView

OVER = frozenset({LeaseState.DRAINING, LeaseState.RELEASED, LeaseState.EXPIRED, LeaseState.LOST})


DOWNWARD = frozenset({Phase.BACKUP, Phase.RELEASE, Phase.RECEIPT})
"""Phases that work on any lease."""


def words_of_end(lease: Lease) -> str:
    """Returns why a lease that is over can serve no step on the way up, and what to do."""
    ended = lease.failure or lease.release_reason or "no reason was given"
    return f"the lease is {lease.state}: {ended}. Trigger a new run."


def next_step(view: LeaseView, now: datetime, settings: LifecycleSettings, until: Phase, memory: Memory) -> tuple[Step, ...]:
    """Returns one Done or Fail alone, or what is to be done now (at most one effect per slot, or one of the lease) and waits.

    Args:
        view: the lease's rows. now: the ledger's clock.
        memory: what this driver remembers; read, never changed.
    """
    if until is Phase.BACKUP:
        return next_backup(view, now, settings, memory)
    if until in {Phase.RELEASE, Phase.RECEIPT}:
        return next_release(view, now, settings, memory)
    return _forward(view, now, settings, until, memory)


def _forward(  # noqa: PLR0911 - one return a guard reads best
    view: LeaseView, now: datetime, settings: LifecycleSettings, until: Phase, memory: Memory
) -> tuple[Step, ...]:
    """The way up, from ``admit`` to ``run``."""
    lease = view.lease
    if lease.state in OVER:
        return (Fail(reason=words_of_end(lease)),)
    if lease.failure is not None:
        return (Fail(reason=lease.failure),)
    if memory.fatal is not None:
        return (Effect(kind=Kind.FAIL, key="fail", reason=memory.fatal),)
    limit = limit_reached(view, now)
    if limit is not None and not is_job_done(view):
        return (Effect(kind=Kind.FAIL, key="fail", reason=limit),)
    if has_reached(lease, until):
        return (Done(phase=until),)
    if settings.mode is FleetMode.OBSERVE and has_reached(lease, Phase.ACQUIRE):
        return (Fail(reason=OBSERVE_TEXT, is_permanent=False),)
    for phase in PHASES[1 : PHASES.index(until) + 1]:
        steps = _toward(phase, view, now, settings, memory)
        if steps:
            return steps
        if not has_reached(lease, phase):
            return (Effect(kind=Kind.MARK, key=f"mark:{phase}", phase=phase),)
    return (Done(phase=until),)


def _toward(phase: Phase, view: LeaseView, now: datetime, settings: LifecycleSettings, memory: Memory) -> tuple[Step, ...]:
    """Returns what is missing for a phase, all earlier ones being done; empty when nothing is."""
    match phase:
        case Phase.PLAN:
            return next_plan(view, now, memory)
        case Phase.ACQUIRE:
            # Once granted, neither a spending stop nor a changed mode may end what runs: they bar purchases, in ``prepare``.
            return () if has_reached(view.lease, phase) else next_acquire(view, settings, memory)
        case Phase.LAUNCH | Phase.SETUP | Phase.VALIDATE:
            # A later phase's work re-enters this one for the slot that lost its node; the slots that are further on stay there.
            return () if has_reached(view.lease, phase) else prepare(view, now, settings, memory, phase)
        case Phase.RUN:
            return next_run(view, now, settings, memory)
        case _:
            return ()
