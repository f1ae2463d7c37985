"""Records of the ledger: whole, small, and different where a test says so (``**changes``)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hostler.ledger.port import Caps
from hostler.model.enums import CapacityType, IntentState, JobState, LeaseState, NodeState
from hostler.model.lease import (
    Backup,
    Event,
    Intent,
    Job,
    Lease,
    Node,
    Receipt,
    client_token_for,
    intent_id_for,
    lease_id_for,
)
from hostler.model.offering import Offering
from hostler.model.request import NodeRequest, RunRef

AT = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
NO_CAPS = Caps()


def offering(price: str | None = "10", zone: str = "eu-west-1a", **changes) -> Offering:
    made = Offering(
        cloud="aws",
        region=zone[:-1],
        zone=zone,
        instance_type="p5.48xlarge",
        capacity_type=CapacityType.SPOT,
        accelerator="H100",
        accelerator_count=8,
        vcpu_count=192,
        memory_mib=2_097_152,
        price_usd_per_hour=None if price is None else Decimal(price),
    )
    return replace(made, **changes)


def request(tenant: str = "vision", **changes) -> NodeRequest:
    made = NodeRequest(
        tenant=tenant,
        accelerator="H100",
        accelerators_per_node=8,
        node_count=2,
        capacity_types=(CapacityType.SPOT,),
        max_cost_usd=Decimal("100.50"),
    )
    return replace(made, **changes)


def lease(run_id: str = "r1", tenant: str = "vision", created_at: datetime = AT, **changes) -> Lease:
    run = RunRef(dag_id="hostler_node_lifecycle", run_id=run_id)
    made = Lease(
        lease_id=lease_id_for(run),
        deployment="lab",
        run=run,
        request=request(tenant),
        state=LeaseState.REQUESTED,
        created_at=created_at,
    )
    return replace(made, **changes)


def intent(of: Lease, slot: int = 0, attempt: int = 1, fence: int = 1, price: str | None = "10", **changes) -> Intent:
    intent_id = intent_id_for(of.lease_id, slot, attempt)
    made = Intent(
        intent_id=intent_id,
        lease_id=of.lease_id,
        slot_index=slot,
        attempt=attempt,
        tenant=of.request.tenant,
        offering=offering(price),
        client_token=client_token_for(intent_id, offering().key),
        state=IntentState.OPEN,
        fence=fence,
        written_at=AT,
        settle_after=AT + timedelta(minutes=2),
    )
    return replace(made, **changes)


def node(of: Intent, state: NodeState = NodeState.LAUNCHED, **changes) -> Node:
    made = Node(
        node_name=of.intent_id,
        lease_id=of.lease_id,
        slot_index=of.slot_index,
        intent_id=of.intent_id,
        tenant=of.tenant,
        offering=of.offering,
        provider_id=f"i-{of.slot_index}{of.attempt}",
        state=state,
        launched_at=AT,
    )
    return replace(made, **changes)


def job(of: Lease, attempt: int = 1, **changes) -> Job:
    made = Job(
        job_id=f"{of.lease_id}-job-{attempt}",
        lease_id=of.lease_id,
        attempt=attempt,
        attempt_token="made-up",
        node_names=("n0", "n1"),
        state=JobState.RUNNING,
        started_at=AT,
    )
    return replace(made, **changes)


def backup(of: Lease, name: str = "b1", sealed_at: datetime = AT, **changes) -> Backup:
    made = Backup(
        backup_id=name,
        lease_id=of.lease_id,
        manifest_uri=f"file:///backups/{name}/manifest.json",
        manifest_sha256="00" * 32,
        object_count=3,
        size_bytes=4096,
        sealed_at=sealed_at,
    )
    return replace(made, **changes)


def receipt(of: Lease, **changes) -> Receipt:
    made = Receipt(
        lease_id=of.lease_id,
        written_at=AT,
        is_complete=True,
        reasons=(),
        cost_usd=Decimal("12.3400"),
        node_hours=Decimal("1.5"),
        nodes_launched=2,
        nodes_lost=0,
    )
    return replace(made, **changes)


def event(lease_id: str | None, what: str = "lease.requested", **changes) -> Event:
    made = Event(lease_id=lease_id, who="cli/ada", what=what, why="a test asks", at=AT, evidence=(("zone", "a"),))
    return replace(made, **changes)
