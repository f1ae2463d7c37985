"""What must hold after every call, and at the end. Each raises BrokenError with words."""

from collections import Counter

from hostler.cloud.tags import INTENT, LEASE, SLOT
from hostler.ledger.port import Caps
from hostler.model.enums import IntentState, LeaseState, NodeState
from hostler.model.lease import Intent


class BrokenError(BaseException):
    """An invariant does not hold. Not an Exception: no code under test may swallow it."""


def rows_of(world, lease_id):
    return world.ledger._rows.get(lease_id, {}).values()


def machines_hold(world):
    """At most one live machine a slot; each has an intent that is not refused; gone and released are the cloud's word.

    Machines whose create the cloud called refused are the cloud's lie: nothing but the reap can know of them.
    """
    live = [machine for machine in world.cloud.live() if machine.token]
    honest = [machine for machine in live if not machine.is_late]
    slots = Counter((machine.tags[LEASE], machine.tags[SLOT]) for machine in honest)
    if slots and max(slots.values()) > 1:
        raise BrokenError(f"more than one live machine in a slot: {slots}")
    for machine in live:
        rows = world.ledger._rows.get(machine.tags[LEASE], {})
        intent = rows.get(("intent", machine.tags[INTENT]))
        if intent is None:
            raise BrokenError(f"{machine.provider_id} lives without an intent")
        node = rows.get(("node", machine.tags[INTENT]))
        if node is not None and node.state is NodeState.GONE and node.provider_id == machine.provider_id:
            raise BrokenError(f"{machine.provider_id} is called gone and lives: {node.ending_reason}")
        if machine.is_late:
            continue
        if intent.state is IntentState.REFUSED:
            raise BrokenError(f"{machine.provider_id} lives and its intent is refused: {intent.error} {intent.error_text}")
        if rows["lease", machine.tags[LEASE]].state is LeaseState.RELEASED:
            raise BrokenError(f"lease {machine.tags[LEASE]} is released and {machine.provider_id} lives")


def caps_hold(world):
    """Intended spending never passes a cap, nor do real machines (but for those the cloud lied about)."""
    caps = world.caps
    if caps == Caps():
        return
    live = [machine for machine in world.cloud.live() if machine.token]
    made_late = {machine.provider_id for machine in world.cloud.machines.values() if machine.is_late}
    late = sum(1 for intent in world.ledger._live.values() if intent.provider_id in made_late)
    real = [machine for machine in live if not machine.is_late]
    usd = sum(machine.kind.price(machine.capacity_type) for machine in real)
    _hold("live nodes", len(real), caps.nodes)
    _hold("USD per hour", usd, caps.usd_per_hour)
    _hold("intended nodes", len(world.ledger._live) - late, caps.nodes)
    for tenant in ("default", "other") if caps.tenant_nodes is not None else ():
        _hold(f"nodes of {tenant}", world.ledger.spending(tenant).nodes - late, caps.tenant_nodes)


def _hold(what, used, cap):
    if cap is not None and used > cap:
        raise BrokenError(f"{used} {what}, the cap is {cap}")


def one_job_at_a_time(world):
    if world.nodes.two_at_once:
        raise BrokenError(f"two attempts of a job at once: {world.nodes.two_at_once}")


def effects_have_events(world):
    """Every machine was opened by an event, every end that we ordered was written before."""
    for lease_id in list(world.ledger._rows):
        events = world.ledger.list_events(lease_id, limit=100000)
        opened = {dict(event.evidence).get("intent_id") for event in events if event.what == "intent.opened"}
        ending = {dict(event.evidence).get("provider_id") for event in events if event.what == "node.ending"}
        for row in rows_of(world, lease_id):
            if isinstance(row, Intent) and row.intent_id not in opened:
                raise BrokenError(f"intent {row.intent_id} has no event")
        by_us = [m for m in world.cloud.machines.values() if m.tags.get(LEASE) == lease_id]
        reaped = {
            dict(e.evidence).get("provider_id") for e in world.ledger.list_events(None, limit=100000) if e.what == "reap.ending"
        }
        for machine in by_us:
            is_by_us = machine.state_reason == "Client.UserInitiatedShutdown" and machine.order_at and machine.off_at is None
            if is_by_us and machine.provider_id not in ending | reaped:
                raise BrokenError(f"{machine.provider_id} was ended without an event")


def all_is_released(world):
    """At the end: every lease released, nothing lives, and the ledger's cost is what the cloud's machines cost."""
    live = [m.provider_id for m in world.cloud.live() if m.token]
    if live:
        raise BrokenError(f"at the end {live} live")
    for lease in world.ledger.list_leases():
        if lease.state is not LeaseState.RELEASED:
            raise BrokenError(f"at the end lease {lease.lease_id} is {lease.state}: {lease.wait_reason}")
    if world.ledger.spending().nodes:
        raise BrokenError("at the end something still counts as spending")


ALWAYS = [machines_hold, caps_hold, one_job_at_a_time]
AT_END = [effects_have_events, all_is_released]
