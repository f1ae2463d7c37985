"""From a machine that the cloud shows to the rows that own it."""

from dataclasses import replace

from hostler.cloud.driver import Machine, MachineState
from hostler.lifecycle.billing import FAILED_STARTS
from hostler.lifecycle.charge import Charge
from hostler.lifecycle.clocks import end_time, launch_time
from hostler.model.enums import IntentState, NodeState
from hostler.model.lease import Event, Intent, Node

STATES = {
    MachineState.PENDING: NodeState.LAUNCHED,
    MachineState.RUNNING: NodeState.LAUNCHED,
    MachineState.STOPPING: NodeState.STOPPING,
    MachineState.STOPPED: NodeState.STOPPED,
    MachineState.TERMINATING: NodeState.TERMINATING,
    MachineState.TERMINATED: NodeState.GONE,
}
"""State of a new node by what the cloud says of its machine."""


def node_of(charge: Charge, intent: Intent, machine: Machine) -> Node:
    """Returns the new node row of an intent's machine."""
    now = charge.now()
    login = charge.fleet.settings.login_of(intent.offering.cloud)
    state = STATES[machine.state]
    has_ended = state in {NodeState.TERMINATING, NodeState.GONE}
    launched_at = launch_time(machine, intent, now)
    return Node(
        node_name=intent.intent_id,
        lease_id=intent.lease_id,
        slot_index=intent.slot_index,
        intent_id=intent.intent_id,
        tenant=intent.tenant,
        offering=intent.offering,
        provider_id=machine.provider_id,
        state=state,
        launched_at=launched_at,
        address=machine.address,
        port=login.port,
        user=login.user,
        host_key=charge.fleet.identity.host_key_pair(intent.intent_id)[1],
        ended_at=end_time(machine, launched_at, now) if state is NodeState.GONE else None,
        last_seen_at=now,
        stopped_at=end_time(machine, launched_at, now) if state is NodeState.STOPPED else None,
        has_failed_start=state is NodeState.GONE and machine.state_reason in FAILED_STARTS,
        ending_reason=f"the cloud took it: {machine.state_reason or machine.state}" if has_ended else None,
    )


def owned_by(intent: Intent, machine: Machine) -> Intent:
    """Returns the intent as the one that this machine came of."""
    return replace(
        intent,
        state=IntentState.OWNED,
        provider_id=machine.provider_id,
        resources=machine.resources,
        error=None,
        error_text=None,
    )


def adopt(charge: Charge, intent: Intent, machine: Machine) -> tuple[Intent, Node, Event]:
    """Returns intent and node as owned, for a machine that was found by its tags, and the event that says so."""
    owned = owned_by(intent, machine)
    why = f"slot {intent.slot_index}: {machine.provider_id} found by its tags ({machine.state}); its intent was {intent.state}"
    event = charge.event("intent.adopted", why, slot_index=intent.slot_index, provider_id=machine.provider_id)
    return owned, node_of(charge, owned, machine), event
