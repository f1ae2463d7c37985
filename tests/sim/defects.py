"""Seeded defects: each is what a wrong Hostler would do. The simulator must catch every one of them."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

from hostler.cloud.errors import AnswerLostError, InsufficientCapacityError
from hostler.drivers.fake.driver import FakeDriver
from hostler.model.enums import NodeState
from hostler.model.lease import Node
from hostler.stores.memory import MemoryLedger


class UnfencedLedger(MemoryLedger):
    """Writes and buys for anybody: neither an older driver nor one of a lease that is let go is stopped.

    The two checks back each other: with one of them alone no seed of the first 120 comes to harm, so the defect lacks both.
    """

    def _check_fence(self, lease_id, fence):
        pass

    def _check_open(self, lease_id):
        pass


class UncappedLedger(MemoryLedger):
    """Buys past every cap."""

    def _check_caps(self, intent, caps):
        pass


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


async def _stops_nothing(charge, job, nodes):
    return []


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
    "releases and buys without a fence": _world(ledger_type=UnfencedLedger),
    "passes a cap": _patched(("hostler.lifecycle.launch.no_room", lambda *_a: None), ledger_type=UncappedLedger),
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
