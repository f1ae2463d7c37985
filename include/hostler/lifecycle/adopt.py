"""From a machine that the cloud shows to the rows that own it."""

from dataclasses import replace
from datetime import datetime

from hostler.cloud.driver import Machine, MachineState
from hostler.lifecycle.billing import FAILED_STARTS
from hostler.lifecycle.charge import Charge
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
    settings = charge.fleet.settings
    state = STATES[machine.state]
    has_ended = state in {NodeState.TERMINATING, NodeState.GONE}
    launched_at = machine.launched_at or now
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
        port=settings.ssh_port,
        user=settings.ssh_user,
        host_key=charge.fleet.identity.host_key_pair(intent.intent_id)[1],
        ended_at=_ended_at(machine, now, launched_at) if state is NodeState.GONE else None,
        last_seen_at=now,
        stopped_at=_ended_at(machine, now, launched_at) if state is NodeState.STOPPED else None,
        has_failed_start=state is NodeState.GONE and machine.state_reason in FAILED_STARTS,
        ending_reason=f"the cloud took it: {machine.state_reason or machine.state}" if has_ended else None,
    )


def _ended_at(machine: Machine, now: datetime, launched_at: datetime) -> datetime:
    return max(machine.ended_at or now, launched_at)


def adopt(charge: Charge, intent: Intent, machine: Machine) -> tuple[Intent, Node, Event]:
    """Returns intent and node as owned, for a machine that was found by its tags, and the event that says so."""
    owned = replace(
        intent,
        state=IntentState.OWNED,
        provider_id=machine.provider_id,
        resources=machine.resources,
        error=None,
        error_text=None,
    )
    why = f"slot {intent.slot_index}: {machine.provider_id} found by its tags ({machine.state}); its intent was {intent.state}"
    event = charge.event("intent.adopted", why, slot_index=intent.slot_index, provider_id=machine.provider_id)
    return owned, node_of(charge, owned, machine), event
