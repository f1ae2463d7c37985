"""A stage for named tests: one world in fair weather, with the few moves that tests make."""

import asyncio

from tests.sim.invariants import ALWAYS
from tests.sim.loop import run_simulated
from tests.sim.world import make_world, run_ref

from hostler.lifecycle.admit import admit
from hostler.lifecycle.converge import converge
from hostler.lifecycle.outcome import Failed, Reached, Waiting
from hostler.model.enums import Phase

TO_RUN = (Phase.PLAN, Phase.ACQUIRE, Phase.LAUNCH, Phase.SETUP, Phase.VALIDATE, Phase.RUN)
TO_END = (*TO_RUN, Phase.BACKUP, Phase.RELEASE, Phase.RECEIPT)


def fair_world(**changes):
    world = make_world(**changes)
    world.checkers = list(ALWAYS)
    return world


def admitted(world, number=0, **conf):
    return admit(world.fleet(), run_ref(number), world.conf(**conf), who="test").lease_id


async def until(world, lease_id, phase, *, fleet=None, for_s=7200.0):
    """Calls converge until it is not waiting any more, or the time is over; returns the last outcome."""
    ends_at = world.seconds() + for_s
    while True:
        outcome = await converge(fleet or world.fleet(), lease_id, phase, holder=f"test/{phase}", budget_s=20)
        if not isinstance(outcome, Waiting) or world.seconds() >= ends_at:
            return outcome
        await asyncio.sleep(min(outcome.retry_after_s, 20))


async def through(world, lease_id, phases=TO_END, **options):
    """Goes through phases in order; stops at the first that is not reached. Returns the last outcome."""
    outcome = None
    for phase in phases:
        outcome = await until(world, lease_id, phase, **options)
        if not isinstance(outcome, Reached):
            return outcome
    return outcome


async def let_go(world, lease_id):
    """The teardowns."""
    for phase in (Phase.BACKUP, Phase.RELEASE):
        outcome = await until(world, lease_id, phase)
        assert isinstance(outcome, Reached), outcome
    return world.ledger.view(lease_id)


def events(world, lease_id=None, what=None):
    return [event for event in world.ledger.list_events(lease_id, limit=10**6) if what is None or event.what == what]


def calls(world, name):
    return [call for call in world.cloud.calls if call.name == name]


def only_live(world):
    (machine,) = [m for m in world.cloud.live() if m.token]
    return machine


__all__ = [
    "TO_END",
    "TO_RUN",
    "Failed",
    "Phase",
    "Reached",
    "Waiting",
    "admitted",
    "calls",
    "events",
    "fair_world",
    "let_go",
    "only_live",
    "run_simulated",
    "through",
    "until",
]
