"""The hands that disturb: each work waits for its time and does one thing to the world."""

import asyncio
import copy

from tests.sim.invariants import BrokenError
from tests.sim.world import DEPLOYMENT

from hostler.cloud.tags import DEPLOYMENT as OWNER
from hostler.lifecycle.reap import reconcile
from hostler.stores.memory import MemoryLedger

ALL_CALLS = frozenset({"launch", "list", "get", "terminate", "interruptions", "foreign", "offerings"})


def disturbances(world, weather):
    """Returns all works of a weather."""

    def freeze(victim):
        world.nodes.frozen[victim] = world.seconds()

    def announce(victim):
        world.cloud.announce(victim, 120)

    def cut_off(victim):
        world.nodes.cut_off(victim, silent_s=world.rng.choice([0, 60]))

    return [
        _put_foreign(world, weather),
        *(_one(world, at, world.cloud.reclaim) for at in weather.reclaims),
        *(_one(world, at, freeze) for at in weather.freezes),
        *(_one(world, at, world.cloud.switch_off) for at in weather.switch_offs),
        *(_one(world, at, announce) for at in weather.announces),
        *(_one(world, at, cut_off) for at in weather.cut_offs),
        *(_reclaim_rudely(world, at) for at in weather.rude_reclaims),
        *(_clone(world, at) for at in weather.clones),
        *(_put_orphans(world, at) for at in weather.orphans),
        *(_deny(world, *span) for span in weather.denials),
        *(_ledger_away(world, *span) for span in weather.ledger_outages),
        *(_power_cut(world, *span) for span in weather.power_cuts),
        *(_idle(world, *span) for span in weather.idles),
        *(_network_cut(world, *span) for span in weather.network_cuts),
    ]


def _victim(world):
    live = sorted(m.provider_id for m in world.cloud.live() if m.token and m.order_at is None)
    return world.rng.choice(live) if live else None


async def _one(world, at, act):
    """At a time, does something to a live machine, if there is one."""
    await asyncio.sleep(at)
    victim = _victim(world)
    if victim:
        world.log(f"{act.__name__} {victim}")
        act(victim)
        world.check()


async def _reclaim_rudely(world, at):
    """The cloud takes a machine, and its peers' programs fail before the cloud shows it."""
    await asyncio.sleep(at)
    victim = _victim(world)
    jobs = [ranks for ranks in world.nodes.jobs.values() if victim in ranks]
    if not jobs:
        return
    world.log(f"peers of {victim} fail, then it is taken")
    for provider_id in jobs[-1]:
        world.nodes.fail_now(provider_id)
    await asyncio.sleep(world.rng.uniform(0, 15))
    world.cloud.reclaim(victim)
    world.check()


async def _clone(world, at):
    """Somebody restores a dump of the ledger elsewhere and lets its reconcile run, for hours: it must end nothing."""
    await asyncio.sleep(at)
    cloned = MemoryLedger(world.now, "clone")
    for name in ("_rows", "_fences", "_events", "_live", "_stock_outs", "_meta"):
        setattr(cloned, name, copy.copy(getattr(world.ledger, name)))
    cloned._rows = {lease_id: dict(rows) for lease_id, rows in world.ledger._rows.items()}
    if not cloned._meta.get("epoch/marks"):
        return  # it has never acted: nobody can tell which of two is the one
    for _ in range(3):
        await asyncio.sleep(700)
        process = world.process()
        fleet = world.fleet(process, ledger=cloned)
        report = await reconcile(fleet, who="clone", dry_run=False)
        ended = [finding for finding in report.findings if finding.action != "none"]
        if ended:
            raise BrokenError(f"a cloned ledger acts: {ended}")


async def _put_orphans(world, at):
    """Machines with our tag that the ledger knows nothing of."""
    await asyncio.sleep(at)
    # As soon as a ledger has acted: before, it would have to ask a person.
    while not world.reconciled:  # noqa: ASYNC110 - on simulated time it costs nothing
        await asyncio.sleep(100)
    for _ in range(world.rng.choice([1, 6])):
        world.orphans.append(world.cloud.put_machine({OWNER: DEPLOYMENT}))


async def _put_foreign(world, weather):
    """Machines of others that look like ours, from the beginning or once the ledger has acted."""
    while not weather.is_foreign_early and not world.reconciled:  # noqa: ASYNC110 - on simulated time it costs nothing
        await asyncio.sleep(100)
    for mark in weather.foreign:
        tags = {OWNER: DEPLOYMENT, **mark}
        world.foreign.append(world.cloud.put_machine(tags, age_s=90000, name="hostler-look-alike"))


async def _deny(world, at, span_s):
    await asyncio.sleep(at)
    world.log("the role is revoked")
    world.cloud.denied = set(ALL_CALLS)
    await asyncio.sleep(span_s)
    world.cloud.denied = set()
    world.log("the role is back")


async def _ledger_away(world, at, span_s):
    await asyncio.sleep(at)
    world.log("the ledger is away")
    world.is_ledger_away = True
    await asyncio.sleep(span_s)
    world.is_ledger_away = False
    world.log("the ledger is back")


async def _power_cut(world, at, span_s):
    """The whole control plane is off: no process of ours runs anywhere."""
    await asyncio.sleep(at)
    world.log("the control plane is off")
    world.off_until = world.seconds() + span_s
    world.power_cuts.append((world.seconds(), world.off_until))
    for process in world.alive:
        process.kill()
    world.alive.clear()


async def _idle(world, at, span_s):
    """Nobody drives a lease for a while (a triggerer that is gone, a paused Dag); the reconcile goes on."""
    await asyncio.sleep(at)
    world.log("nobody drives")
    world.idle_until = world.seconds() + span_s
    for process in world.drivers:
        process.kill()
    world.drivers.clear()


async def _network_cut(world, at, span_s):
    await asyncio.sleep(at)
    world.log("no node can be reached")
    world.nodes.is_network_down = True
    await asyncio.sleep(span_s)
    world.nodes.is_network_down = False
