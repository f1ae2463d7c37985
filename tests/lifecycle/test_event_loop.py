"""The triggerer has one event loop for all its triggers: no call of ours to the ledger, a cloud or a key service may block it."""

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fake_world import make_world

from hostler.lifecycle.admit import admit
from hostler.lifecycle.charge import Charge, LedgerClock
from hostler.lifecycle.converge import converge
from hostler.lifecycle.launch import LEAST_SLACK_S, START_SLACK_S, _freshen
from hostler.lifecycle.reap import reconcile
from hostler.lifecycle.step import Memory
from hostler.lifecycle.watch import watch
from hostler.model.enums import Phase
from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef

RUN = RunRef(dag_id="hostler_node_lifecycle", run_id="r1")
LEASE = lease_id_for(RUN)
CONF = {"recipe": "script", "script": "true", "max_cost_usd": 500}


class StoppedError(BaseException):
    """The process ends here."""


class Watched:
    """Passes every call on, and notes those that came on the thread of the event loop."""

    def __init__(self, inner, on_loop):
        self._inner = inner
        self._on_loop = on_loop

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args, **kwargs):
            if threading.current_thread() is threading.main_thread():
                self._on_loop.append(name)
            return found(*args, **kwargs)

        return call


def watched_world():
    world = make_world()
    admit(world.fleet, RUN, CONF, who="test")
    on_loop = []
    fleet = replace(
        world.fleet,
        ledger=Watched(world.ledger, on_loop),
        drivers={name: Watched(driver, on_loop) for name, driver in world.fleet.drivers.items()},
        keys=Watched(world.fleet.keys, on_loop),
    )
    return world, fleet, on_loop


@pytest.mark.parametrize("phase", [Phase.VALIDATE, Phase.RUN, Phase.BACKUP, Phase.RELEASE, Phase.RECEIPT])
def test_converge_when_it_drives_a_lease_then_nothing_blocks_the_loop(phase):
    world, fleet, on_loop = watched_world()

    async def drive():
        return await converge(fleet, LEASE, phase, holder="test", budget_s=1000)

    if phase in {Phase.BACKUP, Phase.RELEASE, Phase.RECEIPT}:
        asyncio.run(converge(world.fleet, LEASE, Phase.RUN, holder="before", budget_s=1000))
    asyncio.run(drive())
    assert on_loop == []


def test_reconcile_and_watch_when_they_look_then_nothing_blocks_the_loop():
    world, fleet, on_loop = watched_world()
    asyncio.run(converge(world.fleet, LEASE, Phase.VALIDATE, holder="before", budget_s=1000))
    world.clock.at += timedelta(seconds=2000)
    asyncio.run(reconcile(fleet, who="reap", dry_run=False))
    asyncio.run(watch(fleet, LEASE, Phase.RUN, min_s=0, max_s=30))
    assert on_loop == []


def test_watched_when_called_on_the_loop_then_noted():
    _world, fleet, on_loop = watched_world()

    async def blocks():
        fleet.ledger.now()

    asyncio.run(blocks())
    assert on_loop == ["now"]


def test_clock_when_the_loop_counts_seconds_then_it_moves_with_them():
    async def play():
        clock = LedgerClock()
        with pytest.raises(RuntimeError, match="has not been asked"):
            clock.now()
        world = make_world()
        clock.set(world.clock())
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0.01)
        assert timedelta(seconds=0.009) <= clock.now() - world.clock() <= timedelta(seconds=loop.time() - began)

    asyncio.run(play())


@pytest.mark.parametrize(("spare_s", "is_written_anew"), [(START_SLACK_S, False), (LEAST_SLACK_S, False), (1, True), (0, True)])
def test_launch_when_little_time_is_left_to_the_settling_then_it_is_moved_before_the_call(spare_s, is_written_anew):
    world = make_world()
    admit(world.fleet, RUN, CONF, who="test")

    def crash(label):
        if label == "launch:before":
            raise StoppedError

    async def play():
        with pytest.raises(StoppedError):
            await converge(replace(world.fleet, crash=crash), LEASE, Phase.LAUNCH, holder="first", budget_s=1000)
        view = world.ledger.view(LEASE)
        intent = view.intents[0]
        budget_s = world.fleet.drivers["fake"].call_budget_s
        world.clock.at = intent.settle_after - timedelta(seconds=budget_s + spare_s)
        fence = world.ledger.take_fence(LEASE, "second")
        charge = Charge(
            fleet=world.fleet,
            fence=fence,
            view=view,
            memory=Memory(fence=fence.token, caps=world.fleet.settings.caps_of("default")),
        )
        fresh = await _freshen(charge, intent)
        assert (fresh.settle_after != intent.settle_after) is is_written_anew
        left_s = (fresh.settle_after - world.clock()).total_seconds() - budget_s
        assert left_s >= LEAST_SLACK_S

    asyncio.run(play())
