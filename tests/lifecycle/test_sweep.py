"""The cost sweep (bug reports B14, B19, B21, B38 and their kinds)."""

import asyncio
from decimal import Decimal

import pytest
from tests.sim.stage import TO_RUN, Failed, admitted, events, fair_world, let_go, run_simulated, through
from tests.sim.world import DEPLOYMENT as OURS

from hostler.cloud.errors import CloudConfigError, CloudUnavailableError, InsufficientCapacityError
from hostler.cloud.inventory import ThingKind
from hostler.cloud.tags import DEPLOYMENT, INTENT, LEASE
from hostler.drivers.fake.cloud import Fault
from hostler.lifecycle.policies import GuardVerdict, Housekeeping, SweepPolicy
from hostler.lifecycle.reap import confirm_epoch
from hostler.lifecycle.sweep import sweep
from hostler.metrics.sweep import Owner, lines_of
from hostler.model.enums import LeaseState, NodeState

ACT = SweepPolicy(mode=Housekeeping.ACT, grace_s=3600, stopped_after_s=7200)
LOST = {DEPLOYMENT: OURS, LEASE: "abcdefghij234567abcd", INTENT: "abcdefghij234567abcd-0-1"}


def good(_batch):
    return GuardVerdict()


def swept_world(policy=ACT, most=10):
    world = fair_world(settings_changes={"cost_sweep": policy, "destroyed_per_tick": most})
    confirm_epoch(world.fleet(), who="person")
    return world


async def run(world, guard=good, *, dry_run=False):
    return await sweep(world.fleet(), who="sweep", guard=guard, dry_run=dry_run)


def total(outcome, owner):
    return outcome.costs.total(owner)


def test_sweep_when_all_is_well_then_everything_is_priced_and_nothing_is_unexplained():
    async def play():
        world = swept_world()
        lease_id = admitted(world, nodes=2)
        await through(world, lease_id, TO_RUN[:3])
        await asyncio.sleep(300)
        outcome = await run(world)
        rate = world.ledger.view(lease_id).nodes[0].offering.price_usd_per_hour
        assert total(outcome, Owner.OURS) == 2 * (rate * 730 + Decimal("16.00"))  # two machines, two disks of 200 GiB
        assert total(outcome, Owner.ORPHAN) == total(outcome, Owner.FOREIGN) == 0
        assert "unexplained: 0.00 USD a month" in lines_of(outcome.costs)
        assert outcome.findings == ()

    run_simulated(play())


def test_b14_when_an_account_is_shared_then_only_our_own_unattached_thing_goes_and_the_rest_is_listed_apart():
    async def play():
        world = swept_world()
        lost = world.cloud.put_thing(ThingKind.VOLUME, LOST, size_gib=100)
        address = world.cloud.put_thing(ThingKind.ADDRESS, LOST)
        others = [
            world.cloud.put_thing(ThingKind.VOLUME, {**LOST, DEPLOYMENT: "another"}, size_gib=1),
            world.cloud.put_thing(ThingKind.VOLUME, {"Name": "hostler-look-alike"}, size_gib=1),
            world.cloud.put_thing(ThingKind.VOLUME, {**LOST, DEPLOYMENT: OURS.upper()}, size_gib=1),
            world.cloud.put_thing(ThingKind.VOLUME, {**LOST, "karpenter.sh/nodepool": "x"}, size_gib=1),
            world.cloud.put_thing(ThingKind.ADDRESS, {}),
        ]
        world.cloud.put_machine({"Name": "by-hand"})
        first = await run(world)
        assert {one.action for one in first.findings} == {"mark"}
        assert total(first, Owner.ORPHAN) == Decimal("11.65")
        assert {one.thing.thing_id for one in first.costs.of(Owner.FOREIGN)} >= {one.thing_id for one in others}
        assert first.costs.unexplained_usd_per_month == Decimal("11.65")
        await asyncio.sleep(1800)
        assert {one.action for one in (await run(world)).findings} == {"waits"}
        await asyncio.sleep(1801)
        third = await run(world)
        assert {one.action for one in third.findings} == {"removed"}
        assert set(world.cloud.things) == {one.thing_id for one in others}
        assert lost.thing_id not in world.cloud.things
        assert address.thing_id not in world.cloud.things
        assert len(events(world, None, "cost_sweep.ending")) == 2
        assert (await run(world)).costs.unexplained_usd_per_month == 0

    run_simulated(play())


def test_b14_when_a_volume_is_attached_or_its_lease_is_open_then_it_stays():
    async def play():
        world = swept_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:3])
        (machine,) = world.cloud.live()
        detached = world.cloud.put_thing(ThingKind.VOLUME, dict(machine.tags), size_gib=10)
        untagged = world.cloud.put_thing(ThingKind.VOLUME, {}, size_gib=10, attached_to=machine.provider_id)
        for _ in range(3):
            outcome = await run(world)
            assert outcome.findings == ()
            await asyncio.sleep(4000)
        owners = {one.thing.thing_id: one.owner for one in outcome.costs.lines}
        assert (owners[detached.thing_id], owners[untagged.thing_id]) == (Owner.OURS, Owner.OURS)

    run_simulated(play())


def test_sweep_when_a_machine_is_an_orphan_then_priced_named_and_left_to_reap():
    async def play():
        world = swept_world()
        machine = world.cloud.put_machine(LOST, age_s=9000)
        for _ in range(3):
            outcome = await run(world)
            await asyncio.sleep(4000)
        assert {one.action for one in outcome.findings} == {"report"}
        assert "hostler_fleet_reconcile" in outcome.findings[0].reason
        assert machine.order_at is None
        assert outcome.costs.unexplained_usd_per_month == machine.kind.price_usd_per_hour * 730 + 16

    run_simulated(play())


def test_b19_when_a_node_is_stopped_then_compute_ends_at_the_clouds_time_and_only_its_disk_costs_on():
    async def play():
        world = swept_world(SweepPolicy(mode=Housekeeping.REPORT))
        lease_id = admitted(world, nodes=1, keep_s=86_400, max_cost_usd=10_000)
        await through(world, lease_id, TO_RUN[:3])
        (machine,) = world.cloud.live()
        await asyncio.sleep(420)
        world.cloud.switch_off(machine.provider_id)
        stopped_at = world.now()
        await asyncio.sleep(600)  # nobody looks meanwhile
        view = await look(world, lease_id)
        assert view.nodes[0].state is NodeState.STOPPED
        assert view.nodes[0].stopped_at == stopped_at
        await asyncio.sleep(50_000)
        outcome = await run(world)
        price = view.nodes[0].offering.price_usd_per_hour
        billed_s = Decimal(str((stopped_at - view.nodes[0].launched_at).total_seconds()))
        (lease,) = outcome.costs.leases
        assert lease.cost_usd == (price * billed_s / 3600).quantize(Decimal("0.000001"))
        assert lease.usd_per_hour == 0
        assert total(outcome, Owner.OURS) == Decimal("16.00")
        assert outcome.costs.unexplained_usd_per_month == 0
        # It is started again: the pause is not billed, the rest is.
        machine.off_at = None
        before = world.now()
        view = await look(world, lease_id)
        assert view.nodes[0].stopped_at is None
        assert view.nodes[0].stopped_s == pytest.approx((before - stopped_at).total_seconds(), abs=1)

    run_simulated(play())


async def look(world, lease_id):
    """One look of a driver at the cloud, and nothing else."""
    from hostler.lifecycle.charge import Charge
    from hostler.lifecycle.look import look as look_once
    from hostler.lifecycle.step import Effect, Kind, Memory

    fleet = world.fleet()
    fence = fleet.ledger.take_fence(lease_id, "looker")
    charge = Charge(fleet=fleet, fence=fence, view=fleet.ledger.view(lease_id), memory=Memory(fence=fence.token))
    await charge.read_clock()
    await look_once(charge, Effect(kind=Kind.LOOK, key="look"))
    return fleet.ledger.view(lease_id)


def test_b21_when_all_nodes_are_stopped_for_too_long_then_the_lease_is_released_and_the_disks_go():
    async def play():
        world = swept_world()
        lease_id = admitted(world, nodes=2, max_cost_usd=10_000)
        await through(world, lease_id, TO_RUN[:3])
        for machine in world.cloud.live():
            world.cloud.switch_off(machine.provider_id)
        await look(world, lease_id)
        await asyncio.sleep(3600)
        assert (await run(world)).findings == ()
        await asyncio.sleep(3601)
        assert [one.action for one in (await run(world)).findings] == ["mark"]
        await asyncio.sleep(90)
        (finding,) = (await run(world)).findings
        assert (finding.subject, finding.action) == (lease_id, "released")
        assert world.ledger.view(lease_id).lease.state is LeaseState.RELEASED
        assert world.cloud.live() == []
        assert total(await run(world), Owner.OURS) == 0

    run_simulated(play())


def test_costs_when_launches_fail_then_they_cost_0():
    async def play():
        world = swept_world()
        lease_id = admitted(world, nodes=1)
        world.cloud.order_fault("launch", *[Fault(error=InsufficientCapacityError("none")) for _ in range(3)])
        world.cloud.order_fault("launch", Fault(error=CloudConfigError("wrong image")))
        assert isinstance(await through(world, lease_id, TO_RUN), Failed)
        await let_go(world, lease_id)
        (lease,) = (await run(world)).costs.leases
        assert (lease.cost_usd, lease.usd_per_hour) == (0, 0)
        assert lease.failed_launches == lease.launches > 0

    run_simulated(play())


def test_costs_when_the_cloud_made_a_machine_that_never_ran_then_it_costs_0():
    async def play():
        world = swept_world()
        lease_id = admitted(world, nodes=1)
        world.cloud.boot_s = 10**6
        await through(world, lease_id, TO_RUN[:2])
        from hostler.lifecycle.converge import converge

        await converge(world.fleet(), lease_id, TO_RUN[2], holder="t", budget_s=5)
        (machine,) = world.cloud.live()
        world.cloud.end(machine.provider_id, "Server.InsufficientInstanceCapacity")
        await asyncio.sleep(400)
        view = await look(world, lease_id)
        (node,) = [one for one in view.nodes if one.provider_id == machine.provider_id]
        assert (node.state, node.has_failed_start) == (NodeState.GONE, True)
        (lease,) = (await run(world)).costs.leases
        assert (lease.cost_usd, lease.failed_launches) == (0, 1)

    run_simulated(play())


def test_sweep_when_ledger_and_inventory_differ_then_each_difference_is_a_sentence_with_its_money():
    async def play():
        world = swept_world()
        lease_id = admitted(world, nodes=2)
        await through(world, lease_id, TO_RUN[:3])
        await asyncio.sleep(300)
        one, _ = world.cloud.live()
        del world.cloud.machines[one.provider_id]
        outcome = await run(world)
        price = world.ledger.view(lease_id).nodes[0].offering.price_usd_per_hour
        assert outcome.costs.unexplained_usd_per_month == price * 730
        assert "not there by the cloud" in outcome.costs.unexplained[0]

    run_simulated(play())


def test_sweep_when_a_region_cannot_be_listed_then_said_and_marks_stay():
    async def play():
        world = swept_world()
        world.cloud.put_thing(ThingKind.VOLUME, LOST, size_gib=1)
        await run(world)
        world.cloud.order_fault("inventory", Fault(error=CloudUnavailableError("away")))
        outcome = await run(world)
        assert outcome.errors
        assert outcome.findings == ()
        await asyncio.sleep(3601)
        assert [one.action for one in (await run(world)).findings] == ["removed"]

    run_simulated(play())


@pytest.mark.parametrize("policy", [SweepPolicy(), SweepPolicy(mode=Housekeeping.MARK, grace_s=0)])
def test_sweep_when_the_policy_does_not_act_then_nothing_goes(policy):
    async def play():
        world = swept_world(policy)
        world.cloud.put_thing(ThingKind.VOLUME, LOST, size_gib=1)
        for _ in range(3):
            outcome = await run(world)
            await asyncio.sleep(10_000)
        assert {one.action for one in outcome.findings} <= {"report", "waits"}
        assert world.cloud.things

    run_simulated(play())


def test_sweep_when_checks_fail_or_dry_run_then_nothing_is_marked_or_ended():
    async def play():
        world = swept_world()
        world.cloud.put_thing(ThingKind.VOLUME, LOST, size_gib=1)
        for _ in range(2):
            bad = await run(world, lambda _batch: GuardVerdict(problems=("fresh: lists",)))
            dry = await run(world, dry_run=True)
            await asyncio.sleep(10_000)
        assert {one.action for one in bad.findings} == {"none"}
        assert {one.action for one in dry.findings} == {"report"}
        assert [one.action for one in (await run(world)).findings] == ["mark"]

    run_simulated(play())


def test_sweep_when_something_is_attached_again_then_its_mark_is_gone():
    async def play():
        world = swept_world()
        thing = world.cloud.put_thing(ThingKind.VOLUME, LOST, size_gib=1)
        await run(world)
        machine = world.cloud.put_machine({"Name": "by-hand"})
        thing.attached_to = machine.provider_id
        await asyncio.sleep(5000)
        await run(world)
        thing.attached_to = None
        assert [one.action for one in (await run(world)).findings] == ["mark"]

    run_simulated(play())


def test_sweep_when_many_things_are_candidates_then_the_blast_radius_holds():
    async def play():
        world = swept_world(most=2)
        for _ in range(5):
            world.cloud.put_thing(ThingKind.VOLUME, LOST, size_gib=1)
        await run(world)
        await asyncio.sleep(3601)
        outcome = await run(world)
        assert sorted(one.action for one in outcome.findings) == ["removed"] * 2 + ["waits"] * 3

    run_simulated(play())
