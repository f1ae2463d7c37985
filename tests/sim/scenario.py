"""One seed: what goes wrong, when, and a Dag run that lives through it. The lifecycle under it is the real one."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import timedelta

from tests.sim.disturb import disturbances
from tests.sim.guards import ALWAYS_TOO, AT_END_TOO
from tests.sim.invariants import ALWAYS, AT_END
from tests.sim.loop import run_simulated
from tests.sim.weather import Weather, chaos_of, weather_of
from tests.sim.world import SimCrashError, make_world, run_ref

from hostler.ledger.errors import FenceLostError, LedgerUnavailableError, StaleWriteError
from hostler.lifecycle.admit import admit
from hostler.lifecycle.converge import converge
from hostler.lifecycle.outcome import Failed, Reached, Waiting
from hostler.lifecycle.reap import reconcile
from hostler.lifecycle.release import begin_release
from hostler.lifecycle.watch import watch
from hostler.model.enums import LeaseState, Phase
from hostler.model.lease import lease_id_for

UP = (Phase.PLAN, Phase.ACQUIRE, Phase.LAUNCH, Phase.SETUP, Phase.VALIDATE, Phase.RUN)
DOWN = (Phase.BACKUP, Phase.RELEASE)
MOST_SECONDS = 12 * 3600.0


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
        self.world.alive.append(process)
        self.world.drivers.append(process)
        return process

    async def live(self):
        await self.attempt(self.admit_once)
        up = asyncio.ensure_future(self.climb())
        marks = [asyncio.ensure_future(self.mark_failed(at)) for at in self.weather.marks_failed]
        try:
            await self.fall_or_end(up, marks)
            await self.descend()
            # A process that is suspended wakes up long after its run was let go.
            await asyncio.wait([up], timeout=90)
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
        conf = self.world.conf(nodes=self.weather.nodes, max_cost_usd=self.weather.max_cost_usd)
        admit(fleet, run_ref(self.number), conf, who="test")
        return Reached(lease_id=self.lease_id, phase=Phase.ADMIT)

    async def attempt(self, work):
        """One task: tries again after a crash, a lost fence or a wait, as Airflow would. Returns the last outcome."""
        while self.world.seconds() < MOST_SECONDS:
            await self.world.control_plane(is_driver=True)
            fleet = self.world.fleet(self.process())
            try:
                outcome = await work(fleet)
            except (SimCrashError, FenceLostError, StaleWriteError, LedgerUnavailableError):
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
                    outcome, SimCrashError | FenceLostError | StaleWriteError | LedgerUnavailableError
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


async def _reap_now_and_then(world, weather):
    while True:
        await asyncio.sleep(world.rng.uniform(200, 400))
        await world.control_plane()
        chance = weather.crash_chance if world.seconds() < 3000 else 0.0
        process = world.process(crash_chance=chance)
        world.alive.append(process)
        began_s = world.seconds()
        try:
            report = await reconcile(world.fleet(process), who="reap", dry_run=False)
        except (SimCrashError, LedgerUnavailableError):
            continue
        world.tell()
        if report.report_only is None:
            world.reconciled += [began_s, world.seconds()]


async def _settle(world):
    """After the runs: the second net gets the time it needs."""
    while world.seconds() < MOST_SECONDS:
        is_over = all(lease.state is LeaseState.RELEASED for lease in world.ledger.list_leases())
        ours = [m for m in world.cloud.machines.values() if m.token or m in world.orphans]
        waits = [m for m in ours if m.gone_at is None]
        if is_over and not waits:
            return
        await asyncio.sleep(120)


async def play(world, weather):
    works = [*disturbances(world, weather), _reap_now_and_then(world, weather)]
    background = [asyncio.ensure_future(work) for work in works]
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
    world = make_world(
        seed,
        caps=weather.caps,
        lags=weather.lags,
        nodes_asked=weather.nodes,
        calls_per_s=weather.calls_per_s,
        calls_burst=weather.calls_burst,
        **changes,
    )
    world.weather = weather
    world.checkers = [*ALWAYS, *ALWAYS_TOO] if weather.foreign else list(ALWAYS)
    world.cloud.clock_off_s = weather.clock_off_s
    world.cloud.linger_s = weather.linger_s
    world.cloud.list_lag_s = weather.list_lag_s
    world.cloud.stock = weather.stock
    world.cloud.chaos = chaos_of(world, weather)
    world.nodes.total_steps = weather.total_steps
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
    for checker in [*AT_END, *AT_END_TOO]:
        run_simulated(_late(checker, world))
    return world


async def _late(checker, world):
    """Checks at the end, on a clock far behind every machine's end."""
    loop = asyncio.get_running_loop()
    loop._sim_clock[0] = 2 * MOST_SECONDS
    checker(world)
