"""Letting go: ``draining`` under the lease's fence, every machine ended and confirmed by the cloud, then ``released``."""

from dataclasses import replace
from datetime import datetime

from hostler.ledger.errors import StaleWriteError
from hostler.lifecycle.charge import Charge
from hostler.lifecycle.events import make_event, shorten
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.step import Effect
from hostler.model.enums import IntentState, LeaseState, NodeState
from hostler.model.lease import Lease

ON_THE_WAY_OUT = frozenset({LeaseState.DRAINING, LeaseState.RELEASED})


def begin_release(fleet: Fleet, lease_id: str, *, who: str, reason: str) -> Lease:
    """Takes the fence and sets the lease ``draining``: from now on nothing more is bought for it. Ends no machine by itself.

    Then call ``converge(until=Phase.RELEASE)``. Idempotent: the first reason is kept; a released lease is returned as it is.

    Args:
        who: person or step, for the record. reason: words for a person.

    Raises:
        LeaseNotFoundError: no such lease. FenceLostError: another driver came in between: call again.
    """
    lease = fleet.ledger.view(lease_id).lease
    if lease.state in ON_THE_WAY_OUT:
        return lease
    fence = fleet.ledger.take_fence(lease_id, who)
    while True:
        lease = fleet.ledger.view(lease_id).lease
        if lease.state in ON_THE_WAY_OUT:
            return lease
        draining = _draining(lease, reason, fleet.ledger.now())
        event = make_event(lease_id, who, "lease.draining", reason)
        fleet.crash("write:draining:before")
        try:
            stored = fleet.ledger.write(lease_id, [draining], [event], fence)[0]
        except StaleWriteError:
            continue  # a writer without a fence (the reap's mark) came first: read again
        fleet.crash("write:draining:after")
        assert isinstance(stored, Lease)  # noqa: S101 - the ledger returns what it was given
        return stored


def _draining(lease: Lease, reason: str, now: datetime) -> Lease:
    return replace(
        lease,
        state=LeaseState.DRAINING,
        release_reason=lease.release_reason or shorten(reason),
        drain_started_at=lease.drain_started_at or now,
        wait_since=None,
        wait_reason=None,
    )


async def drain(charge: Charge, effect: Effect) -> None:
    """Effect DRAIN: as ``begin_release``, under the fence that this driver already has."""
    event = charge.event("lease.draining", effect.reason)
    await charge.write("draining", [_draining(charge.lease, effect.reason, charge.now())], [event])


async def finish(charge: Charge, _effect: Effect) -> None:
    """Effect FINISH: everything is gone by the cloud's word and nothing is in doubt."""
    view = charge.view
    is_clean = all(node.state is NodeState.GONE for node in view.nodes) and all(
        intent.state in {IntentState.OWNED, IntentState.REFUSED} for intent in view.intents
    )
    if not is_clean:
        raise AssertionError("released while a machine lives or is in doubt: a defect of next_release")
    lease = replace(charge.lease, state=LeaseState.RELEASED, released_at=charge.now(), wait_since=None, wait_reason=None)
    why = f"{len(view.nodes)} machines are gone by the cloud's word, {len(view.intents)} intents are settled"
    await charge.write("released", [lease], [charge.event("lease.released", why)])
