"""What goes wrong in a seed, and when."""

import random
from dataclasses import dataclass, field
from decimal import Decimal

from hostler.cloud.errors import (
    AnswerLostError,
    CloudThrottledError,
    CloudUnavailableError,
    InsufficientCapacityError,
)
from hostler.drivers.fake.cloud import Fault
from hostler.ledger.port import Caps
from hostler.model.enums import CapacityType

FOREIGN = (
    {"hostler:deployment": "another"},
    {"hostler:deployment": "SIM"},
    {"aws:autoscaling:groupName": "x"},
    {"karpenter.sh/nodepool": "x"},
    {"KubernetesCluster": "x"},
)
"""Marks of machines that are not ours, over our own tag."""


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
    announces: list[float] = field(default_factory=list)
    cut_offs: list[float] = field(default_factory=list)
    rude_reclaims: list[float] = field(default_factory=list)
    clones: list[float] = field(default_factory=list)
    orphans: list[float] = field(default_factory=list)
    denials: list[tuple[float, float]] = field(default_factory=list)
    ledger_outages: list[tuple[float, float]] = field(default_factory=list)
    power_cuts: list[tuple[float, float]] = field(default_factory=list)
    network_cuts: list[tuple[float, float]] = field(default_factory=list)
    idles: list[tuple[float, float]] = field(default_factory=list)
    total_steps: int = 80
    foreign: tuple = ()
    clock_off_s: float = 0.0
    linger_s: float = 3600.0
    is_foreign_early: bool = True
    calls_per_s: float | None = None
    calls_burst: int = 60
    max_cost_usd: float = 100000.0


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
    return worse(weather, rng)


def worse(weather: Weather, rng: random.Random) -> Weather:
    """Adds what was learned later, by chances of its own: at most some of it in one life."""

    def times(chance):
        return [rng.uniform(1, 400) for _ in range(rng.choice([1, 1, 2]))] if rng.random() < chance else []

    def spans(chance, longest_s):
        return [(rng.uniform(1, 500), rng.uniform(20, longest_s))] if rng.random() < chance else []

    weather.announces = times(0.15)
    weather.cut_offs = times(0.15)
    weather.rude_reclaims = times(0.15)
    weather.clones = times(0.08)
    weather.orphans = times(0.08)
    weather.denials = spans(0.08, 3000)
    weather.ledger_outages = spans(0.1, 1200)
    weather.power_cuts = spans(0.1, rng.choice([900, 8000, 20000]))
    weather.network_cuts = spans(0.08, 1500)
    weather.idles = spans(0.06, 4000)
    weather.total_steps = rng.choice([80] * 6 + [400, 2500])
    weather.foreign = tuple(rng.sample(FOREIGN, 2)) if rng.random() < 0.15 else ()
    weather.is_foreign_early = rng.random() < 0.5
    weather.clock_off_s = rng.choice([0.0] * 8 + [-3600.0, 3600.0])
    weather.linger_s = rng.choice([3600.0] * 7 + [0.0, 60.0])
    weather.calls_per_s = rng.choice([None] * 7 + [0.3, 1.0])
    if rng.random() < 0.1:
        weather.max_cost_usd = float(rng.choice([10, 20, 40]) * weather.nodes)
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
