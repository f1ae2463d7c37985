"""Nodes lost in any phase, jobs that are cut off, and a control plane that is away: the run still ends right."""

import asyncio

import pytest
from tests.sim.stage import (
    TO_RUN,
    Failed,
    Phase,
    Reached,
    admitted,
    events,
    fair_world,
    let_go,
    run_simulated,
    through,
    until,
)
from tests.sim.world import SimCrashError

from hostler.lifecycle.converge import converge
from hostler.lifecycle.reap import reconcile
from hostler.metrics.cost import accrued_usd
from hostler.model.enums import JobState, LeaseState, NodeState

DAY_S = 86400.0


async def training(world, **conf):
    """A lease whose job runs since 50 s, and the task that drives it."""
    lease_id = admitted(world, **conf)
    await through(world, lease_id, TO_RUN[:5])
    driver = asyncio.ensure_future(until(world, lease_id, Phase.RUN))
    await asyncio.sleep(50)
    return lease_id, driver


@pytest.mark.parametrize("phase", ["launch", "setup", "validate", "run"])
@pytest.mark.parametrize("how", ["reclaim", "announce", "freeze", "switch_off", "vanish"])
def test_node_when_lost_in_any_phase_then_its_slot_is_refilled_in_the_gangs_zone_and_the_run_ends_right(phase, how):
    async def play():
        world = fair_world()
        world.nodes.total_steps = 300
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[: TO_RUN.index(Phase(phase))])
        driver = asyncio.ensure_future(until(world, lease_id, Phase(phase), for_s=50000))
        await asyncio.sleep({"launch": 8, "setup": 15, "validate": 0, "run": 70}[phase])
        victim = world.cloud.live()[0].provider_id
        match how:
            case "reclaim":
                world.cloud.reclaim(victim)
            case "announce":
                world.cloud.announce(victim, 120)
            case "freeze":
                world.nodes.frozen[victim] = world.seconds()
            case "switch_off":
                world.cloud.switch_off(victim)
            case "vanish":
                world.cloud.linger_s = 0.0
                world.cloud.reclaim(victim)
        assert isinstance(await driver, Reached)
        assert isinstance(await through(world, lease_id, for_s=50000), Reached)
        view = world.ledger.view(lease_id)
        assert view.receipt.is_complete
        assert len(view.nodes) == 3
        if phase == "run":
            assert len({node.offering.zone for node in view.nodes}) == 1
            assert view.jobs[-1].resumed_from_step >= 40
            assert view.receipt.nodes_lost == 1

    run_simulated(play())


@pytest.mark.parametrize("how", ["rebooted", "killed"])
def test_job_when_its_node_was_started_anew_or_its_supervisor_killed_then_it_is_resumed_on_the_same_nodes_after_a_probe(how):
    async def play():
        world = fair_world()
        lease_id, driver = await training(world)
        victim = world.ledger.view(lease_id).nodes[0]
        probes = len(events(world, lease_id, "node.probed"))
        world.nodes.cut_off(victim.provider_id, silent_s=60 if how == "rebooted" else 0)
        assert isinstance(await driver, Reached)
        view = world.ledger.view(lease_id)
        assert [job.state for job in view.jobs] == [JobState.STOPPED, JobState.SUCCEEDED]
        assert view.jobs[1].resumed_from_step >= 40
        assert len(world.cloud.machines) == 2
        assert len(events(world, lease_id, "node.probed")) == probes + 1
        assert view.lease.failure is None

    run_simulated(play())


def test_job_when_it_is_cut_off_again_and_again_then_the_run_fails_with_words_and_its_work_is_kept():
    async def play():
        world = fair_world()
        world.nodes.total_steps = 100_000
        lease_id, driver = await training(world)
        while not driver.done():
            for machine in world.cloud.live():
                world.nodes.cut_off(machine.provider_id)
            await asyncio.sleep(60)
        assert isinstance(driver.result(), Failed)
        assert "broke off" in driver.result().reason
        assert (await let_go(world, lease_id)).backups[-1].is_verified

    run_simulated(play())


def test_survivors_when_a_peer_is_taken_then_their_failure_is_not_the_users_and_their_job_is_stopped():
    async def play():
        world = fair_world(nodes_asked=3)
        lease_id, driver = await training(world, nodes=3)
        first, *others = world.ledger.view(lease_id).nodes
        # Their collective call fails at once; the cloud shows the peer running for some seconds more.
        for node in others:
            world.nodes.fail_now(node.provider_id)
        await asyncio.sleep(12)
        world.cloud.reclaim(first.provider_id)
        assert isinstance(await driver, Reached)
        view = world.ledger.view(lease_id)
        assert [job.state for job in view.jobs] == [JobState.STOPPED, JobState.SUCCEEDED]
        assert "node lost" in view.jobs[0].error
        assert view.lease.failure is None

    run_simulated(play())


def test_job_when_it_fails_while_every_node_stays_then_it_is_the_users_failure_within_a_minute():
    async def play():
        world = fair_world()
        lease_id, driver = await training(world)
        world.nodes.fail_now(world.ledger.view(lease_id).nodes[0].provider_id)
        at = world.seconds()
        assert isinstance(await driver, Failed)
        assert world.seconds() - at < 60
        assert world.ledger.view(lease_id).jobs[-1].state is JobState.FAILED

    run_simulated(play())


def test_gang_when_a_node_hangs_and_the_others_call_themselves_running_then_the_count_of_nodes_decides():
    async def play():
        world = fair_world(nodes_asked=4)
        lease_id, driver = await training(world, nodes=4)
        world.cloud.reclaim(world.ledger.view(lease_id).nodes[2].provider_id)
        assert isinstance(await driver, Reached)
        view = world.ledger.view(lease_id)
        survivors = [rank for rank in world.nodes.jobs[view.jobs[0].job_id].values() if rank.stopped_at is not None]
        assert len(survivors) == 3

    run_simulated(play())


def test_notice_when_the_cloud_announces_then_work_is_saved_and_moved_before_the_node_goes():
    async def play():
        world = fair_world()
        world.nodes.total_steps = 200
        lease_id, driver = await training(world)
        victim = world.ledger.view(lease_id).nodes[0].provider_id
        world.cloud.announce(victim, 120)
        told_at = world.now()
        assert isinstance(await driver, Reached)
        view = world.ledger.view(lease_id)
        assert "interruption announced" in view.jobs[0].error
        assert (view.jobs[0].ended_at - told_at).total_seconds() <= 30
        assert view.jobs[1].resumed_from_step == view.jobs[0].step
        lost = next(node for node in view.nodes if node.provider_id == victim)
        assert "interruption announced" in lost.ending_reason

    run_simulated(play())


def test_control_plane_when_off_for_a_day_then_no_job_is_killed_and_all_are_attached_to_again_in_ten_minutes():
    async def play():
        world = fair_world(nodes_asked=1)
        world.nodes.total_steps = 200_000
        ids = [admitted(world, number, nodes=1) for number in range(4)]
        await reconcile(world.fleet(), who="reap", dry_run=False)
        for lease_id in ids:
            await through(world, lease_id, TO_RUN[:5])
            await converge(world.fleet(), lease_id, Phase.RUN, holder="run", budget_s=60)
        await asyncio.sleep(DAY_S)
        back = world.seconds()
        # The reconcile is the first to come back, some retries come minutes later.
        for _ in range(2):
            await reconcile(world.fleet(), who="reap", dry_run=False)
            await asyncio.sleep(250)
        for lease_id in ids:
            await converge(world.fleet(), lease_id, Phase.RUN, holder="retry", budget_s=0)
        assert world.seconds() - back < 600
        for lease_id in ids:
            view = world.ledger.view(lease_id)
            assert view.lease.state is LeaseState.ACTIVE
            assert [job.state for job in view.jobs] == [JobState.RUNNING]
            assert view.jobs[0].step >= DAY_S
            assert accrued_usd(view, world.now()) < view.lease.request.max_cost_usd
        assert len(world.cloud.machines) == len(ids)
        assert len(world.nodes.started) == len(ids)

    run_simulated(play())


def test_control_plane_when_off_and_the_cost_cap_is_reached_then_the_node_ends_itself_within_the_cap():
    async def play():
        world = fair_world(nodes_asked=1)
        world.nodes.total_steps = 200_000
        lease_id = admitted(world, nodes=1, max_cost_usd=100.0)
        await through(world, lease_id, TO_RUN[:5])
        await converge(world.fleet(), lease_id, Phase.RUN, holder="run", budget_s=60)
        await asyncio.sleep(DAY_S)
        assert world.cloud.live() == []
        for _ in range(3):
            await reconcile(world.fleet(), who="reap", dry_run=False)
            await asyncio.sleep(400)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.RELEASED
        spent = accrued_usd(view, world.now())
        assert 95 < spent <= 100, spent

    run_simulated(play())


def test_unattended_when_the_grace_is_nearly_over_and_everything_was_off_then_it_begins_anew():
    async def play():
        world = fair_world(nodes_asked=1)
        world.nodes.total_steps = 200_000
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:5])
        await converge(world.fleet(), lease_id, Phase.RUN, holder="run", budget_s=60)
        for _ in range(5):
            await asyncio.sleep(300)
            await reconcile(world.fleet(), who="reap", dry_run=False)
        assert world.ledger.view(lease_id).lease.state is LeaseState.UNATTENDED
        await asyncio.sleep(6 * 3600)
        await reconcile(world.fleet(), who="reap", dry_run=False)
        assert world.ledger.view(lease_id).lease.state is LeaseState.UNATTENDED
        for _ in range(8):
            await asyncio.sleep(300)
            await reconcile(world.fleet(), who="reap", dry_run=False)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert view.backups[-1].is_verified
        assert view.jobs[-1].shipped_step > 6 * 3600

    run_simulated(play())


def test_unattended_when_its_job_is_done_then_the_lease_is_let_go_at_once():
    async def play():
        world = fair_world(nodes_asked=1)
        world.nodes.total_steps = 1500
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:5])
        await converge(world.fleet(), lease_id, Phase.RUN, holder="run", budget_s=20)
        for _ in range(7):
            await asyncio.sleep(300)
            await reconcile(world.fleet(), who="reap", dry_run=False)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert "job is done" in view.lease.release_reason
        assert all(node.state is NodeState.GONE for node in view.nodes)

    run_simulated(play())


@pytest.mark.parametrize("crash_at", ["start-job:before", "start-job:after", "write:job-running:before", "poll-job:after"])
def test_b03_when_the_scheduler_restarts_and_the_task_is_run_again_then_the_one_job_is_attached_to(crash_at):
    async def play():
        world = fair_world()
        world.nodes.total_steps = 600
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        for _ in range(3):
            with pytest.raises(SimCrashError):
                await until(world, lease_id, Phase.RUN, fleet=world.fleet(world.process(crash_at=crash_at)))
            await asyncio.sleep(30)
        assert isinstance(await until(world, lease_id, Phase.RUN), Reached)
        view = world.ledger.view(lease_id)
        assert len(view.jobs) == 1
        assert len(world.nodes.started) == len(set(world.nodes.started)) == 2
        assert len(world.cloud.machines) == 2
        assert world.nodes.two_at_once == []

    run_simulated(play())
