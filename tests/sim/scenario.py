"""One seed: what goes wrong, when, and a Dag run that lives through it. The lifecycle under it is the real one."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from tests.sim.invariants import ALWAYS, AT_END
from tests.sim.loop import run_simulated
from tests.sim.world import SimCrashError, make_world, run_ref

from hostler.cloud.errors import (
    AnswerLostError,
    CloudThrottledError,
    CloudUnavailableError,
    InsufficientCapacityError,
)
from hostler.drivers.fake.cloud import Fault
from hostler.ledger.errors import FenceLostError, StaleWriteError
from hostler.ledger.port import Caps
from hostler.lifecycle.admit import admit
from hostler.lifecycle.converge import converge
from hostler.lifecycle.outcome import Failed, Reached, Waiting
from hostler.lifecycle.reap import reconcile
from hostler.lifecycle.release import begin_release
from hostler.lifecycle.watch import watch
from hostler.model.enums import CapacityType, LeaseState, Phase
from hostler.model.lease import lease_id_for

UP = (Phase.PLAN, Phase.ACQUIRE, Phase.LAUNCH, Phase.SETUP, Phase.VALIDATE, Phase.RUN)
DOWN = (Phase.BACKUP, Phase.RELEASE)
MOST_SECONDS = 12 * 3600.0


@dataclass(slots=True)
class Weather:
    """What a seed does to its world."""

    crash_chance: float
    lags: float
    list_lag_s: float
    chances: dict[str, float]
    nodes: int
    leases: int
    caps: Caps
    stock: dict
    refuses_end_s: float
    reclaims: list[float] = field(default_factory=list)
    freezes: list[float] = field(default_factory=list)
    switch_offs: list[float] = field(default_factory=list)
    marks_failed: list[float] = field(default_factory=list)
    doubles: bool = False
    stall_chance: float = 0.0


def weather_of(rng: random.Random) -> Weather:
    stock = {}
    for zone in ("fake-north-a", "fake-north-b", "fake-north-c"):
        for kind in (CapacityType.SPOT, CapacityType.ON_DEMAND):
            stock[zone, "fake.8xh100", kind] = rng.choice([0, 1, 2, 3, 100])
    stock["fake-north-c", "fake.8xh100", CapacityType.ON_DEMAND] = 100
    stormy = rng.random()
    nodes = rng.choice([1, 2, 2, 3, 4])

    def times(chance):
        return [rng.uniform(1, 400) for _ in range(rng.choice([1, 1, 2, 3]))] if rng.random() < chance else []

    weather = Weather(
        crash_chance=rng.choice([0.0, 0.005, 0.02, 0.05]) * stormy,
        lags=rng.choice([0.0, 0.5, 8.0]),
        list_lag_s=rng.choice([0.0, 1.0, 15.0]),
        chances={name: rng.choice([0.0, 0.05, 0.3]) * stormy for name in ("throttle", "lost", "unavailable", "late")},
        nodes=nodes,
        leases=rng.choice([1, 1, 1, 2]),
        caps=Caps(nodes=rng.choice([None, nodes, nodes + 1]), usd_per_hour=rng.choice([None, Decimal(60 * nodes)])),
        stock=stock,
        refuses_end_s=rng.choice([0.0] * 7 + [3600.0]),
        reclaims=times(0.4),
        freezes=times(0.2),
        switch_offs=times(0.2),
        marks_failed=[],
        doubles=rng.random() < 0.4,
        stall_chance=rng.choice([0.0, 0.0, 0.1]),
    )
    if rng.random() < 0.35:
        # Marked failed in mid-run, or while the launch is under way in a process that is slow to write.
        is_early = rng.random() < 0.5
        weather.marks_failed = [rng.uniform(0.1, 15) if is_early else rng.uniform(1, 400)]
        if is_early:
            weather.stall_chance, weather.lags = 0.4, 1.0
    return weather


def chaos_of(world, weather):
    rng, chances = world.rng, weather.chances
    # A cloud that is down for ever proves nothing: the weather clears in the end.
    ends_at = world.rng.uniform(600, 3000)

    def chaos(call, subject):
        if world.seconds() > ends_at:
            return None
        if rng.random() < chances["throttle"]:
            return Fault(error=CloudThrottledError("slow down", retry_after_s=rng.choice([None, 1.0, 10.0])))
        if rng.random() < chances["unavailable"]:
            return Fault(error=CloudUnavailableError("503"))
        if call in {"launch", "terminate"} and rng.random() < chances["lost"]:
            return Fault(error=AnswerLostError("cut"), when=rng.choice(["before", "after"]))
        if call == "launch" and rng.random() < chances["late"] * 0.3:
            return Fault(error=InsufficientCapacityError("not now"), when="late", late_s=rng.uniform(5, 400))
        return None

    return chaos


@dataclass(slots=True)
class Run:
    """One Dag run as Airflow would drive it: steps with retries, triggers between, teardowns whatever happens."""

    world: object
    weather: Weather
    number: int
    is_marked_failed: bool = False
    processes: list = field(default_factory=list)

    @property
    def lease_id(self):
        return lease_id_for(run_ref(self.number))

    def process(self):
        chance = self.weather.crash_chance if self.world.seconds() < 3000 else 0.0
        stall = self.weather.stall_chance if self.world.seconds() < 3000 else 0.0
        process = self.world.process(crash_chance=chance, stall_chance=stall)
        self.processes.append(process)
        return process

    async def live(self):
        await self.attempt(self.admit_once)
        up = asyncio.ensure_future(self.climb())
        marks = [asyncio.ensure_future(self.mark_failed(at)) for at in self.weather.marks_failed]
        try:
            await self.fall_or_end(up, marks)
            await self.descend()
        finally:
            for task in (up, *marks):
                task.cancel()
            results = await asyncio.gather(up, *marks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError | SimCrashError):
                raise result

    async def fall_or_end(self, up, marks):
        """Waits for the end of the way up, or for the mark that ends it; a marked run's process lives on for a while."""
        done, _pending = await asyncio.wait([up, *marks], return_when=asyncio.FIRST_COMPLETED)
        if up in done:
            up.result()
            return
        self.world.log("the run is marked failed; its process lives on for a while")
        self.is_marked_failed = True
        asyncio.get_running_loop().call_later(self.world.rng.uniform(1, 12), self.kill_all, list(self.processes))
        await asyncio.sleep(1.0)

    def kill_all(self, processes):
        for process in processes:
            process.kill()

    async def mark_failed(self, at):
        await asyncio.sleep(at)

    async def admit_once(self, fleet):
        admit(fleet, run_ref(self.number), self.world.conf(nodes=self.weather.nodes), who="test")
        return Reached(lease_id=self.lease_id, phase=Phase.ADMIT)

    async def attempt(self, work):
        """One task: tries again after a crash, a lost fence or a wait, as Airflow would. Returns the last outcome."""
        while self.world.seconds() < MOST_SECONDS:
            fleet = self.world.fleet(self.process())
            try:
                outcome = await work(fleet)
            except (SimCrashError, FenceLostError, StaleWriteError):
                await asyncio.sleep(self.world.rng.uniform(1, 60))
                continue
            if isinstance(outcome, Waiting):
                await asyncio.sleep(min(outcome.retry_after_s, 30))
                continue
            if isinstance(outcome, Failed) and not outcome.is_permanent:
                await asyncio.sleep(30)
                continue
            return outcome
        return None

    async def climb(self):
        for phase in UP:
            outcome = await self.attempt(lambda fleet, phase=phase: self.step(fleet, phase))
            if not isinstance(outcome, Reached):
                self.world.log(f"run {self.number}: {outcome}")
                return

    async def step(self, fleet, phase):
        world = self.world
        if self.is_marked_failed and phase in UP:
            raise SimCrashError("killed") if world.rng.random() < 0.5 else FenceLostError("marked failed")
        if self.weather.doubles and world.rng.random() < 0.4:
            other = world.fleet(self.process())
            outcomes = await asyncio.gather(
                converge(fleet, self.lease_id, phase, holder="first", budget_s=60),
                converge(other, self.lease_id, phase, holder="second", budget_s=60),
                return_exceptions=True,
            )
            for outcome in outcomes:
                if isinstance(outcome, BaseException) and not isinstance(
                    outcome, SimCrashError | FenceLostError | StaleWriteError
                ):
                    raise outcome
            good = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
            if not good:
                raise outcomes[0]
            return good[0]
        outcome = await converge(
            fleet, self.lease_id, phase, holder=f"run-{self.number}/{phase}", budget_s=world.rng.choice([0, 20, 60])
        )
        if isinstance(outcome, Waiting) and world.rng.random() < 0.5:
            await watch(fleet, self.lease_id, phase, min_s=1, max_s=120)
        return outcome

    async def descend(self):
        if self.world.rng.random() < 0.3:
            await self.attempt(self.begin)
        for phase in DOWN:
            tries = 0

            async def once(fleet, phase=phase):
                nonlocal tries
                tries += 1
                outcome = await converge(fleet, self.lease_id, phase, holder=f"run-{self.number}/{phase}", budget_s=60)
                is_over = phase is Phase.BACKUP and tries > 8
                return Reached(lease_id=self.lease_id, phase=phase) if is_over else outcome

            await self.attempt(once)
        await self.attempt(self.receipt)

    async def begin(self, fleet):
        begin_release(fleet, self.lease_id, who="person", reason="a person asked")
        return Reached(lease_id=self.lease_id, phase=Phase.RELEASE)

    async def receipt(self, fleet):
        outcome = await converge(fleet, self.lease_id, Phase.RECEIPT, holder="receipt", budget_s=10)
        return Reached(lease_id=self.lease_id, phase=Phase.RECEIPT) if isinstance(outcome, Failed) else outcome


async def _disturb(world, at, act):
    """At a time, does something to a live machine, if there is one."""
    await asyncio.sleep(at)
    live = sorted(m.provider_id for m in world.cloud.live() if m.token and m.order_at is None)
    if live:
        victim = world.rng.choice(live)
        world.log(f"{act.__name__} {victim}")
        act(victim)
        world.check()


async def _reap_now_and_then(world, weather):
    while True:
        await asyncio.sleep(world.rng.uniform(200, 400))
        chance = weather.crash_chance if world.seconds() < 3000 else 0.0
        try:
            await reconcile(world.fleet(world.process(crash_chance=chance)), who="reap", dry_run=False)
        except SimCrashError:
            continue


async def _settle(world):
    """After the runs: the second net gets the time it needs."""
    while world.seconds() < MOST_SECONDS:
        is_over = all(lease.state is LeaseState.RELEASED for lease in world.ledger.list_leases())
        waits = [m for m in world.cloud.machines.values() if m.token and m.gone_at is None]
        if is_over and not waits:
            return
        await asyncio.sleep(120)


async def play(world, weather):
    def freeze(provider_id):
        world.nodes.frozen[provider_id] = world.seconds()

    disturbances = [
        *(_disturb(world, at, world.cloud.reclaim) for at in weather.reclaims),
        *(_disturb(world, at, freeze) for at in weather.freezes),
        *(_disturb(world, at, world.cloud.switch_off) for at in weather.switch_offs),
        _reap_now_and_then(world, weather),
    ]
    background = [asyncio.ensure_future(work) for work in disturbances]
    runs = [asyncio.ensure_future(Run(world, weather, number).live()) for number in range(weather.leases)]
    try:
        await asyncio.gather(*runs)
        await _settle(world)
        for task in background:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()
    finally:
        for task in (*background, *runs):
            task.cancel()
        await asyncio.gather(*background, *runs, return_exceptions=True)


def play_seed(seed, weather_change=None, **changes):
    """Plays one seed to its end; ``changes`` to the world may put a defect in. Returns the world; raises BrokenError."""
    rng = random.Random(f"weather-{seed}")
    weather = weather_of(rng)
    if weather_change is not None:
        weather_change(weather, rng)
    world = make_world(seed, caps=weather.caps, lags=weather.lags, nodes_asked=weather.nodes, **changes)
    world.checkers = list(ALWAYS)
    world.cloud.list_lag_s = weather.list_lag_s
    world.cloud.stock = weather.stock
    world.cloud.chaos = chaos_of(world, weather)
    world.nodes.total_steps = 80
    if weather.refuses_end_s:
        world.cloud.refuses_end_until = world.now() + timedelta(seconds=weather.refuses_end_s)
    for number in range(1, 40):
        if rng.random() < 0.08:
            world.nodes.bad_setups[f"i-{number:08x}"] = rng.choice([1, 2])
        if rng.random() < 0.05:
            world.nodes.verdicts[f"i-{number:08x}"] = rng.choice(["failed", "unknown"])
        if rng.random() < 0.04:
            world.nodes.dead_boots.add(f"i-{number:08x}")
    run_simulated(play(world, weather))
    for checker in AT_END:
        run_simulated(_late(checker, world))
    return world


async def _late(checker, world):
    """Checks at the end, on a clock far behind every machine's end."""
    loop = asyncio.get_running_loop()
    loop._sim_clock[0] = 2 * MOST_SECONDS
    checker(world)
