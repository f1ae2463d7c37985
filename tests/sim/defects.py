"""Seeded defects: each is what a wrong Hostler would do. The simulator must catch every one of them."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

from tests.sim.world import BEGIN

from hostler.cloud.errors import AnswerLostError, InsufficientCapacityError
from hostler.drivers.fake.driver import FakeDriver
from hostler.ledger.port import Caps
from hostler.lifecycle.epoch import Standing
from hostler.model.enums import NodeState
from hostler.model.lease import Node
from hostler.stores.memory import MemoryLedger


class HopefulLedger(MemoryLedger):
    """Calls a machine gone as soon as its end was ordered."""

    def write(self, lease_id, records, events, fence=None):
        hopeful = [
            replace(row, state=NodeState.GONE, ended_at=self.now())
            if isinstance(row, Node) and row.state is NodeState.TERMINATING
            else row
            for row in records
        ]
        return super().write(lease_id, hopeful, events, fence)


class SilentLedger(MemoryLedger):
    """Ends machines without a word."""

    def write(self, lease_id, records, events, fence=None):
        return super().write(lease_id, records, [event for event in events if event.what != "node.ending"], fence)


class WanderingDriver(FakeDriver):
    """Tries the other zones by itself, with the same token: a token means nothing in another zone."""

    def launch(self, order):
        try:
            return super().launch(order)
        except (AnswerLostError, InsufficientCapacityError):
            zones = [zone for zone in self.cloud.zones[order.offering.region] if zone != order.offering.zone]
            return super().launch(replace(order, offering=replace(order.offering, zone=zones[0])))


class UnpacedDriver(FakeDriver):
    """Calls as often as it likes."""

    def pace_with(self, claim):
        pass


class HastyDriver(FakeDriver):
    """Claims that a launch call has had its effect at once and that lists never lag: unknown intents are refused too early."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.call_budget_s = -1000.0
        self.list_lag_s = 0.0


def _passes(*_arguments, **_more):
    return None


async def _stops_nothing(charge, job, nodes):
    return []


def _calm(**changes):
    """A change of weather to a fair one with the named trouble in it."""

    def change(weather, rng):
        fair = {name: [] for name in TROUBLES}
        for name, value in {**FAIR, **fair, **changes}.items():
            setattr(weather, name, value(rng) if callable(value) else value)
        weather.chances = dict.fromkeys(weather.chances, 0.0)

    return change


TROUBLES = (
    *("reclaims", "freezes", "switch_offs", "marks_failed", "announces", "cut_offs", "rude_reclaims", "clones", "orphans"),
    *("denials", "ledger_outages", "power_cuts", "network_cuts", "idles"),
)
FAIR = {
    "caps": Caps(),
    "crash_chance": 0.0,
    "lags": 0.0,
    "stall_chance": 0.0,
    "refuses_end_s": 0.0,
    "doubles": False,
    "leases": 1,
    "clock_off_s": 0.0,
    "linger_s": 3600.0,
    "calls_per_s": None,
    "max_cost_usd": 100000.0,
    "total_steps": 80,
}


async def _untold(*_arguments, **_more):
    return None


async def _at_once(charge, gang, words):
    return True


def _afresh(charge, job, order, secrets):
    return replace(order, restore_step=None, expires_in_s=None)


def _world(**changes):
    @contextmanager
    def _change():
        yield changes

    return _change


def _patched(*targets, **changes):
    @contextmanager
    def _change():
        with ExitStack() as stack:
            for target, value in targets:
                stack.enter_context(patch(target, value))
            yield changes

    return _change


DEFECTS = {
    # The two checks back each other, and slots, versions and caps back them: both are missing, in weather that shows it.
    "buys for an older driver and for a lease that is let go": _patched(
        ("hostler.ledger.rules.check_fence", _passes),
        ("hostler.ledger.rules.check_is_open", _passes),
        # Marked failed while a process that is slow to write is about to buy.
        weather_change=_calm(marks_failed=lambda rng: [rng.uniform(0.5, 10)], stall_chance=0.9, nodes=1),
    ),
    "passes a cap": _patched(
        ("hostler.lifecycle.launch.no_room", _passes),
        ("hostler.ledger.rules.check_caps", _passes),
    ),
    "calls gone what was only ordered to end": _world(ledger_type=HopefulLedger),
    "ends machines without an event": _world(ledger_type=SilentLedger),
    "reuses a token across zones": _world(driver_type=WanderingDriver),
    "guesses that nothing came of a lost answer": _world(driver_type=HastyDriver),
    "believes a list that lags": _patched(
        ("hostler.lifecycle.look.is_young", lambda *_a: False),
        ("hostler.lifecycle.look.MISSES", 1),
    ),
    "releases while a launch is in doubt": _patched(
        ("hostler.lifecycle.next_end.unresolved", lambda *_a: ()),
        ("hostler.lifecycle.next_end._doubts", lambda *_a: []),
    ),
    "starts a job while another attempt runs": _patched(("hostler.lifecycle.gang.stop_ranks", _stops_nothing)),
    "ends machines of others": _patched(
        ("hostler.lifecycle.reap.is_foreign", lambda *_a: False),
        ("hostler.drivers.fake.driver.is_foreign", lambda *_a: False),
        weather_change=_calm(foreign=({"KubernetesCluster": "x"},), is_foreign_early=False, total_steps=2500, nodes=1),
    ),
    "ends all it thinks nobody's in one tick": _patched(
        ("hostler.lifecycle.reap.claim_end", lambda *_a: True),
        weather_change=_calm(orphans=[10.0] * 3),
    ),
    "leaves orphans": _patched(
        ("hostler.lifecycle.reap.claim_end", lambda *_a: False),
        weather_change=_calm(orphans=[10.0]),
    ),
    "acts on a cloned ledger": _patched(
        ("hostler.lifecycle.reap.standing", lambda _fleet: Standing(is_known=True)),
        weather_change=_calm(clones=[500.0], reclaims=[60.0, 120.0], power_cuts=[(600.0, 6000.0)], freezes=[90.0]),
    ),
    "tells nobody that the cloud denies it": _patched(
        ("hostler.lifecycle.look.note_denied", _untold),
        ("hostler.lifecycle.reap.note_denied", _untold),
        weather_change=_calm(denials=[(60.0, 2000.0)], nodes=2),
    ),
    "takes a lost peer for the user's failure": _patched(
        ("hostler.lifecycle.gang._is_confirmed", _at_once),
        weather_change=_calm(rude_reclaims=lambda rng: [rng.uniform(80, 140)], nodes=3),
    ),
    "starts afresh after a loss": _patched(
        ("hostler.lifecycle.run._complete", _afresh),
        weather_change=_calm(cut_offs=lambda rng: [rng.uniform(100, 140)]),
    ),
    "lets nodes outlive the cost cap": _patched(
        ("hostler.lifecycle.run.EXPIRY_SLACK_S", 40000),
        weather_change=_calm(power_cuts=[(90.0, 20000.0)], max_cost_usd=40.0, nodes=1, total_steps=30000),
    ),
    "passes the rate of calls": _world(
        driver_type=UnpacedDriver,
        weather_change=_calm(calls_per_s=0.02, calls_burst=8, nodes=4),
    ),
    "lets go right after an outage": _patched(
        ("hostler.lifecycle.reap_leases.watching_since", lambda _fleet, **_k: BEGIN),
        weather_change=_calm(idles=[(100.0, 6000.0)], power_cuts=[(1700.0, 5000.0)], total_steps=9000, nodes=1),
    ),
    "buys while no reconcile looks": _patched(
        ("hostler.lifecycle.launch.why_stale", lambda _fleet: None),
        weather_change=_calm(power_cuts=[(15.0, 12000.0)]),
    ),
}
