"""Maximum cost, deadline, caps, spending stop and mode observe: they bite in every phase."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.sim.stage import (
    TO_RUN,
    Failed,
    Phase,
    Reached,
    Waiting,
    admitted,
    events,
    fair_world,
    let_go,
    run_simulated,
    through,
    until,
)

from hostler.ledger.port import Caps
from hostler.lifecycle.converge import converge
from hostler.lifecycle.limits import limit_reached, seconds_left
from hostler.lifecycle.reap import reconcile
from hostler.metrics.cost import accrued_usd
from hostler.model.enums import CapacityType, FleetMode, JobState, LeaseState


def endless(**changes):
    world = fair_world(**changes)
    world.nodes.total_steps = 10**6
    return world


def iso_in(world, seconds):
    return (world.now() + timedelta(seconds=seconds)).isoformat()


async def _until_failed(world, lease_id):
    outcome = await through(world, lease_id, TO_RUN, for_s=20000)
    assert isinstance(outcome, Failed), outcome
    view = await let_go(world, lease_id)
    assert view.lease.state is LeaseState.RELEASED
    assert world.cloud.live() == []
    return outcome, view


def test_deadline_when_waiting_for_stock_then_it_bites_and_nothing_was_bought():
    async def play():
        world = endless()
        for zone in world.cloud.zones["fake-north"]:
            for kind in CapacityType:
                world.cloud.stock[zone, "fake.8xh100", kind] = 0
        lease_id = admitted(world, deadline=iso_in(world, 3600))
        outcome, view = await _until_failed(world, lease_id)
        assert outcome.reason.startswith("deadline")
        assert view.nodes == ()
        assert 3600 <= world.seconds() < 3700

    run_simulated(play())


def test_deadline_when_training_then_it_bites_and_the_work_is_kept():
    async def play():
        world = endless()
        lease_id = admitted(world, deadline=iso_in(world, 1000))
        outcome, view = await _until_failed(world, lease_id)
        assert outcome.reason.startswith("deadline")
        assert view.backups[-1].is_verified
        assert view.jobs[-1].shipped_step > 700
        assert world.seconds() < 1100

    run_simulated(play())


@pytest.mark.parametrize("is_network_down", [False, True])
def test_max_cost_when_training_or_unreachable_then_the_sum_never_passes_it(is_network_down):
    async def play():
        world = endless()
        lease_id = admitted(world, max_cost_usd=20.0)
        await through(world, lease_id, TO_RUN[:5])
        await converge(world.fleet(), lease_id, Phase.RUN, holder="x", budget_s=20)
        world.nodes.is_network_down = is_network_down
        outcome, view = await _until_failed(world, lease_id)
        assert outcome.reason.startswith("max_cost_usd")
        assert Decimal(18) < accrued_usd(view, world.now()) <= Decimal(20)

    run_simulated(play())


def test_max_cost_when_booting_never_ends_then_it_bites():
    async def play():
        world = endless()
        world.nodes.dead_boots = {f"i-{number:08x}" for number in range(100)}
        lease_id = admitted(world, max_cost_usd=8.0)
        outcome, view = await _until_failed(world, lease_id)
        assert outcome.reason.startswith("max_cost_usd")
        assert accrued_usd(view, world.now()) <= Decimal(8)

    run_simulated(play())


def test_max_cost_when_nobody_drives_the_lease_then_the_reap_lets_it_go():
    async def play():
        world = endless()
        lease_id = admitted(world, max_cost_usd=20.0)
        await through(world, lease_id, TO_RUN[:5])
        await converge(world.fleet(), lease_id, Phase.RUN, holder="x", budget_s=20)
        for _ in range(60):
            await asyncio.sleep(60)
            await reconcile(world.fleet(), who="reap", dry_run=False)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert view.lease.release_reason.startswith("max_cost_usd")
        assert accrued_usd(view, world.now()) <= Decimal(22)

    run_simulated(play())


def test_max_cost_when_the_gang_would_spend_it_within_a_minute_then_nothing_is_bought():
    async def play():
        world = endless()
        outcome = await through(world, admitted(world, max_cost_usd=0.5), TO_RUN)
        assert isinstance(outcome, Failed)
        assert "max_cost_usd" in outcome.reason
        assert world.cloud.machines == {}

    run_simulated(play())


def test_keep_when_the_job_is_done_then_nodes_stay_until_it_is_over_or_a_limit_bites():
    async def play():
        world = fair_world()
        lease_id = admitted(world, keep_s=600)
        assert isinstance(await through(world, lease_id, TO_RUN), Reached)
        done_at = world.ledger.view(lease_id).jobs[-1].ended_at
        assert 600 <= (world.now() - done_at).total_seconds() < 640
        world = fair_world()
        lease_id = admitted(world, keep_s=86400, max_cost_usd=20.0)
        assert isinstance(await through(world, lease_id, TO_RUN, for_s=20000), Reached)
        view = await let_go(world, lease_id)
        assert accrued_usd(view, world.now()) <= Decimal(20)
        assert view.lease.failure is None

    run_simulated(play())


def test_keep_when_it_is_long_then_the_nodes_hear_from_us_all_the_time():
    async def play():
        world = fair_world()
        lease_id = admitted(world, keep_s=86400, max_cost_usd=10000.0)
        await until(world, lease_id, Phase.RUN, for_s=600)
        assert world.ledger.view(lease_id).lease.keep_until is not None
        heard = world.nodes.renewed
        await until(world, lease_id, Phase.RUN, for_s=7200)
        assert world.nodes.renewed - heard >= 2 * 7200 / 600

    run_simulated(play())


def test_caps_when_two_tenants_ask_thirty_two_times_at_once_then_no_cap_is_ever_passed():
    async def play():
        caps = Caps(nodes=6, usd_per_hour=Decimal(150), tenant_nodes=4, tenant_usd_per_hour=Decimal(96))
        world = fair_world(caps=caps, lags=2.0)
        tenants = ("default", "other")
        leases = [admitted(world, number, nodes=1 + number % 2, tenant=tenants[number % 2]) for number in range(32)]

        async def live(lease_id):
            outcome = await through(world, lease_id, TO_RUN, for_s=40000)
            assert isinstance(outcome, Reached), outcome
            await let_go(world, lease_id)

        await asyncio.gather(*(live(lease_id) for lease_id in leases))
        assert world.ledger.spending().nodes == 0
        assert events(world, None, "lease.waiting")

    run_simulated(play())


def test_caps_when_fleet_yaml_names_the_tenant_no_more_then_nothing_is_bought_for_its_leases():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        fleet = world.fleet()
        fleet = replace(fleet, settings=replace(fleet.settings, tenant_caps={"other": Caps(nodes=4)}))
        assert isinstance(await until(world, lease_id, Phase.LAUNCH, fleet=fleet, for_s=60), Waiting)
        assert world.cloud.machines == {}

    run_simulated(play())


def test_stop_spending_when_set_then_nothing_new_is_bought_and_resume_lifts_it():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        world.ledger.set_spending_stopped(True, [])
        outcome = await through(world, lease_id, TO_RUN)
        assert isinstance(outcome, Failed)
        assert not outcome.is_permanent
        assert "stopped" in outcome.reason
        assert world.cloud.machines == {}
        world.ledger.set_spending_stopped(False, [])
        assert isinstance(await through(world, lease_id, TO_RUN), Reached)

    run_simulated(play())


def test_stop_spending_when_a_job_runs_then_it_runs_to_its_end():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        world.ledger.set_spending_stopped(True, [])
        assert isinstance(await until(world, lease_id, Phase.RUN), Reached)
        view = await let_go(world, lease_id)
        assert view.jobs[-1].state is JobState.SUCCEEDED
        assert len(view.jobs) == 1

    run_simulated(play())


def test_stop_spending_when_intents_are_written_and_not_called_then_no_call_is_made():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])

        def stop_between(label):
            if label == "write:intent:after":
                world.ledger.set_spending_stopped(True, [])

        fleet = replace(world.fleet(), crash=stop_between)
        outcome = await converge(fleet, lease_id, Phase.LAUNCH, holder="x", budget_s=0)
        assert isinstance(outcome, Failed)
        assert not outcome.is_permanent
        assert world.cloud.machines == {}
        assert world.ledger.spending().nodes == 0

    run_simulated(play())


def test_mode_observe_when_a_job_runs_then_nothing_is_ended_and_enforce_takes_it_up_again():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        await converge(world.fleet(), lease_id, Phase.RUN, holder="x", budget_s=20)
        fleet = world.fleet()
        observing = replace(fleet, settings=replace(fleet.settings, mode=FleetMode.OBSERVE))
        for phase in (Phase.RUN, Phase.BACKUP, Phase.RELEASE):
            outcome = await converge(observing, lease_id, phase, holder="x", budget_s=20)
            assert isinstance(outcome, Failed)
            assert not outcome.is_permanent
            assert "observe" in outcome.reason
        assert len(world.cloud.live()) == 2
        assert world.ledger.view(lease_id).jobs[-1].state is JobState.RUNNING
        assert isinstance(await until(world, lease_id, Phase.RUN), Reached)
        await let_go(world, lease_id)

    run_simulated(play())


def test_mode_observe_when_asked_to_buy_then_it_plans_and_says_what_it_would_buy():
    async def play():
        world = fair_world(settings_changes={"mode": FleetMode.OBSERVE})
        lease_id = admitted(world)
        outcome = await through(world, lease_id, TO_RUN)
        assert isinstance(outcome, Failed)
        assert "would buy fake/fake-north/" in outcome.reason
        assert world.ledger.view(lease_id).lease.plan.offerings
        assert world.cloud.machines == {}

    run_simulated(play())


def test_seconds_left_when_a_rate_runs_then_the_limit_bites_at_that_time():
    async def play():
        world = fair_world()
        lease_id = admitted(world, max_cost_usd=10.0)
        assert seconds_left(world.ledger.view(lease_id), world.now()) is None
        await through(world, lease_id, TO_RUN[:3])
        view = world.ledger.view(lease_id)
        left_s = seconds_left(view, world.now())
        await asyncio.sleep(left_s - 1)
        assert limit_reached(view, world.now()) is None
        await asyncio.sleep(2)
        assert "max_cost_usd" in limit_reached(view, world.now())

    run_simulated(play())


def test_unattended_when_nobody_drives_then_grace_and_release_with_backup_and_a_retry_takes_it_up():
    async def play():
        world = endless()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        await converge(world.fleet(), lease_id, Phase.RUN, holder="x", budget_s=20)
        await asyncio.sleep(1000)
        await reconcile(world.fleet(), who="reap", dry_run=False)
        assert world.ledger.view(lease_id).lease.state is LeaseState.UNATTENDED
        await converge(world.fleet(), lease_id, Phase.RUN, holder="retry", budget_s=0)
        assert world.ledger.view(lease_id).lease.state is LeaseState.ACTIVE
        assert len(world.ledger.view(lease_id).jobs) == 1
        for _ in range(20):
            await asyncio.sleep(200)
            await reconcile(world.fleet(), who="reap", dry_run=False)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert "unattended" in view.lease.release_reason
        assert view.backups[-1].is_verified

    run_simulated(play())


def test_waiting_when_there_is_no_stock_then_the_reason_says_so_and_the_wait_grows():
    async def play():
        world = fair_world()
        for zone in world.cloud.zones["fake-north"]:
            for kind in CapacityType:
                world.cloud.stock[zone, "fake.8xh100", kind] = 0
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        barred_s = []
        for _ in range(3):
            outcome = await until(world, lease_id, Phase.LAUNCH, for_s=0)
            assert isinstance(outcome, Waiting)
            assert "no stock in 6 of 6 offerings" in outcome.reason
            memories = world.ledger.stock_outs()
            barred_s.append(max((memory.until - world.now()).total_seconds() for memory in memories))
            await asyncio.sleep(max(barred_s) + 1)
        assert barred_s[0] < barred_s[1] < barred_s[2]

    run_simulated(play())
