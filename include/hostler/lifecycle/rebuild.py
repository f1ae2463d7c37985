"""What can be said of a lost ledger from the clouds' tags alone. It writes nothing: a person decides what to do with it.

Tags hold deployment, tenant, lease, slot and intent; the cloud adds type, zone, times and addresses. What a run asked for, its
plan, its jobs and its costs are not in them: for these there is the backup of the ledger.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from hostler.cloud import tags as names
from hostler.cloud.driver import CloudDriver, Machine, MachineState, SupportsForeignView
from hostler.cloud.errors import CloudError
from hostler.model.enums import LeaseState, NodeState


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltNode:
    """A node, and the intent that owns it, as they would be written. ``launched_at``: None when the cloud does not tell."""

    lease_id: str
    slot_index: int
    intent_id: str
    tenant: str
    cloud: str
    region: str
    zone: str
    instance_type: str
    capacity_type: str
    provider_id: str
    client_token: str | None
    address: str | None
    state: NodeState
    launched_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltLease:
    """A lease as it would be written: ``unattended``, since nobody drives it, until a person says what it was for."""

    lease_id: str
    tenant: str
    slot_count: int
    created_at: datetime | None
    state: LeaseState = LeaseState.UNATTENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What the clouds tell.

    Attributes:
        doubts: (provider id, why it would not be written, or what a person has to decide). foreign: ids of machines that are
            not ours, never touched. errors: what could not be listed: then nothing here is complete.
    """

    leases: tuple[RebuiltLease, ...]
    nodes: tuple[RebuiltNode, ...]
    doubts: tuple[tuple[str, str], ...]
    foreign: tuple[str, ...]
    errors: tuple[str, ...]


_STATES = {
    MachineState.PENDING: NodeState.LAUNCHED,
    MachineState.RUNNING: NodeState.LAUNCHED,
    MachineState.STOPPING: NodeState.STOPPING,
    MachineState.STOPPED: NodeState.STOPPED,
    MachineState.TERMINATING: NodeState.TERMINATING,
}


def look(drivers: Mapping[str, CloudDriver], deployment: str) -> Rebuilt:
    """Lists every region of every cloud, read-only, and says what a new ledger would hold."""
    machines: list[Machine] = []
    foreign: list[str] = []
    errors: list[str] = []
    for name, driver in sorted(drivers.items()):
        for region in driver.regions:
            try:
                machines += driver.list_nodes(region)
                if isinstance(driver, SupportsForeignView):
                    foreign += [machine.provider_id for machine in driver.list_foreign(region)]
            except CloudError as error:
                errors.append(f"{name}/{region}: {type(error).__name__}: {error}")
    return rebuild(machines, deployment, foreign=foreign, errors=errors)


def rebuild(
    machines: Iterable[Machine], deployment: str, *, foreign: Iterable[str] = (), errors: Iterable[str] = ()
) -> Rebuilt:
    """Returns the rows that the machines' tags allow; pure. Terminated machines make none."""
    nodes: list[RebuiltNode] = []
    doubts: list[tuple[str, str]] = []
    others = list(foreign)
    for machine in machines:
        if names.is_foreign(machine.tags, deployment):
            others.append(machine.provider_id)
        elif machine.state is not MachineState.TERMINATED:
            made = _node(machine)
            if isinstance(made, str):
                doubts.append((machine.provider_id, made))
            else:
                nodes.append(made)
    nodes.sort(key=lambda node: (node.lease_id, node.slot_index, node.intent_id, node.provider_id))
    return Rebuilt(
        leases=tuple(_leases(nodes)),
        nodes=tuple(nodes),
        doubts=tuple(sorted([*doubts, *_shared_slots(nodes)])),
        foreign=tuple(sorted(set(others))),
        errors=tuple(errors),
    )


def _node(machine: Machine) -> RebuiltNode | str:
    """Returns the node, or why its tags don't make one."""
    found = machine.tags
    lease_id, intent_id, slot = found.get(names.LEASE), found.get(names.INTENT), found.get(names.SLOT, "")
    tenant = found.get(names.TENANT)
    if not lease_id or not intent_id or not tenant or not slot.isdecimal():
        return "carries our deployment's tag, but not all of lease, slot, intent and tenant"
    if not intent_id.startswith(f"{lease_id}-{int(slot)}-"):
        return f"its tags disagree: intent {intent_id}, lease {lease_id}, slot {slot}"
    return RebuiltNode(
        lease_id=lease_id,
        slot_index=int(slot),
        intent_id=intent_id,
        tenant=tenant,
        cloud=machine.cloud,
        region=machine.region,
        zone=machine.zone,
        instance_type=machine.instance_type,
        capacity_type=machine.capacity_type.value,
        provider_id=machine.provider_id,
        client_token=machine.client_token,
        address=machine.address,
        state=_STATES[machine.state],
        launched_at=machine.launched_at,
    )


def _leases(nodes: Iterable[RebuiltNode]) -> Iterable[RebuiltLease]:
    by_lease: dict[str, list[RebuiltNode]] = defaultdict(list)
    for node in nodes:
        by_lease[node.lease_id].append(node)
    for lease_id, mine in by_lease.items():
        times = [node.launched_at for node in mine if node.launched_at is not None]
        slots = max(node.slot_index for node in mine) + 1
        yield RebuiltLease(lease_id=lease_id, tenant=mine[0].tenant, slot_count=slots, created_at=min(times, default=None))


def _shared_slots(nodes: Iterable[RebuiltNode]) -> Iterable[tuple[str, str]]:
    """Two machines in a slot, or two tenants of a lease: both are shown, and neither is called the right one."""
    slots: dict[tuple[str, int], RebuiltNode] = {}
    tenants: dict[str, str] = {}
    for node in nodes:
        first = slots.setdefault((node.lease_id, node.slot_index), node)
        if first is not node:
            yield node.provider_id, f"slot {node.slot_index} of {node.lease_id} has {first.provider_id} too"
        if tenants.setdefault(node.lease_id, node.tenant) != node.tenant:
            yield node.provider_id, f"lease {node.lease_id} has two tenants, {tenants[node.lease_id]} and {node.tenant}"
