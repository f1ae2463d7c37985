"""Seeded defects: each is what a wrong Hostler would do. The simulator must catch every one of them."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

from hostler.cloud.errors import AnswerLostError, InsufficientCapacityError
from hostler.drivers.fake.driver import FakeDriver
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


def _marked_failed_in_launch(weather, rng):
    """Marked failed while a process that is slow to write is about to buy."""
    weather.marks_failed, weather.stall_chance, weather.lags = [rng.uniform(1, 8)], 0.7, 1.0
    weather.crash_chance, weather.leases, weather.doubles = 0.0, 1, False


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
        weather_change=_marked_failed_in_launch,
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
}
