"""What tags alone tell of a lost ledger."""

from dataclasses import replace
from datetime import UTC, datetime

from tests.fake_world import DEPLOYMENT, make_world

from hostler.cloud.driver import Machine, MachineState
from hostler.cloud.errors import CloudUnavailableError
from hostler.cloud.tags import DEPLOYMENT as TAG
from hostler.cloud.tags import SLOT, tags_for
from hostler.drivers.fake.cloud import Fault
from hostler.lifecycle.rebuild import look, rebuild
from hostler.model.enums import CapacityType, LeaseState, NodeState

LEASE = "abcdefghij234567abcd"
AT = datetime(2026, 12, 1, tzinfo=UTC)


def machine(
    provider_id="i-1", slot=0, attempt=1, *, lease=LEASE, deployment=DEPLOYMENT, tenant="t", state=MachineState.RUNNING, **tags
):
    made = tags_for(
        deployment=deployment, lease_id=lease, slot_index=slot, intent_id=f"{lease}-{slot}-{attempt}", tenant=tenant, extra={}
    )
    return Machine(
        cloud="aws", region="r", zone="ra", provider_id=provider_id, name="n", instance_type="p5", state=state,
        capacity_type=CapacityType.SPOT, tags={**made, **tags}, launched_at=AT, client_token="c",
    )  # fmt: skip


def test_rebuild_when_a_gang_runs_then_its_lease_intents_and_nodes_are_told():
    found = rebuild([machine("i-2", 1, 3), machine("i-1", 0), machine("i-9", 2, state=MachineState.TERMINATED)], DEPLOYMENT)
    assert [(one.lease_id, one.tenant, one.slot_count, one.state, one.created_at) for one in found.leases] == [
        (LEASE, "t", 2, LeaseState.UNATTENDED, AT)
    ]
    assert [(one.intent_id, one.provider_id, one.state) for one in found.nodes] == [
        (f"{LEASE}-0-1", "i-1", NodeState.LAUNCHED),
        (f"{LEASE}-1-3", "i-2", NodeState.LAUNCHED),
    ]
    assert (found.doubts, found.foreign, found.errors) == ((), (), ())


def test_rebuild_when_machines_are_not_certainly_ours_then_they_are_named_and_make_no_rows():
    """B14's kind: another deployment, a look-alike value, another owner's mark, and no tag at all."""
    others = [
        machine("i-1", deployment="another"),
        machine("i-2", deployment=DEPLOYMENT.upper()),
        machine("i-3", **{"karpenter.sh/nodepool": "x"}),
        replace(machine("i-4"), tags={"Name": "hostler-x"}),
    ]
    found = rebuild(others, DEPLOYMENT, foreign=["i-5", "i-1"])
    assert (found.leases, found.nodes, found.foreign) == ((), (), ("i-1", "i-2", "i-3", "i-4", "i-5"))


def test_rebuild_when_tags_are_missing_or_disagree_then_doubts_and_no_rows():
    broken = [
        replace(machine("i-1"), tags={TAG: DEPLOYMENT}),
        machine("i-2", **{SLOT: "x"}),
        machine("i-3", **{SLOT: "7"}),
    ]
    found = rebuild(broken, DEPLOYMENT)
    assert found.nodes == ()
    assert [subject for subject, _ in found.doubts] == ["i-1", "i-2", "i-3"]
    assert "disagree" in found.doubts[2][1]


def test_rebuild_when_two_machines_share_a_slot_then_both_are_told_and_a_person_decides():
    found = rebuild([machine("i-1"), machine("i-2", attempt=2, tenant="u")], DEPLOYMENT)
    assert len(found.nodes) == 2
    assert found.doubts == (
        ("i-2", f"lease {LEASE} has two tenants, t and u"),
        ("i-2", f"slot 0 of {LEASE} has i-1 too"),
    )


def test_look_when_a_region_does_not_answer_then_it_is_said_and_nothing_is_changed():
    world = make_world()
    world.cloud.put_machine(dict(machine().tags))
    found = look(world.fleet.drivers, DEPLOYMENT)
    assert [one.lease_id for one in found.leases] == [LEASE]
    world.cloud.order_fault("list", *[Fault(error=CloudUnavailableError("away")) for _ in range(10)])
    found = look(world.fleet.drivers, DEPLOYMENT)
    assert found.errors
    assert world.ledger.list_leases() == ()
    assert world.ledger.list_events(None) == ()
