"""Launch without an answer, processes that end between any two steps, and release before, during, after launch, and twice."""

import asyncio

import pytest
from tests.sim.stage import (
    TO_END,
    TO_RUN,
    Failed,
    Phase,
    Reached,
    Waiting,
    admitted,
    calls,
    events,
    fair_world,
    let_go,
    only_live,
    run_simulated,
    through,
    until,
)
from tests.sim.world import SimCrashError

from hostler.cloud.errors import AnswerLostError, InsufficientCapacityError
from hostler.drivers.fake.cloud import Fault
from hostler.ledger.errors import FenceLostError
from hostler.lifecycle.converge import converge
from hostler.lifecycle.release import begin_release
from hostler.model.enums import CapacityType, IntentState, LeaseState


@pytest.mark.parametrize("when", ["before", "after"])
def test_launch_when_its_answer_is_lost_then_it_is_looked_up_and_one_machine_lives(when):
    async def play():
        world = fair_world()
        world.cloud.list_lag_s = 10.0
        lease_id = admitted(world, nodes=1)
        world.cloud.order_fault("launch", Fault(error=AnswerLostError("cut"), when=when))
        assert isinstance(await through(world, lease_id, TO_RUN[:3]), Reached)
        only_live(world)
        states = [intent.state for intent in world.ledger.view(lease_id).intents]
        assert states == ([IntentState.OWNED] if when == "after" else [IntentState.REFUSED, IntentState.OWNED])
        assert isinstance(await through(world, lease_id, TO_END), Reached)

    run_simulated(play())


def test_launch_when_its_answer_is_lost_without_effect_then_it_is_refused_only_after_the_call_budget():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        world.cloud.order_fault("launch", Fault(error=AnswerLostError("cut")))
        await through(world, lease_id, TO_RUN[:3])
        first, second = world.ledger.view(lease_id).intents
        assert second.written_at > first.settle_after
        assert (first.settle_after - first.written_at).total_seconds() >= world.driver().call_budget_s

    run_simulated(play())


LABELS = [
    "write:intent:before",
    "write:intent:after",
    "launch:before",
    "launch:after",
    "write:node-launched:before",
    "write:node-launched:after",
    "write:node-registered:before",
    "write:mark-launch:after",
    "write:setup-started:after",
    "start-setup:after",
    "write:node-initialized:before",
    "write:node-probed:before",
    "write:job-opened:before",
    "start-job:before",
    "write:job-progress:before",
    "seal:after",
    "write:backup-sealed:before",
    "write:draining:after",
    "write:node-ending:after",
    "terminate:after",
    "write:released:before",
    "write:receipt:before",
]


@pytest.mark.parametrize("label", LABELS)
def test_any_step_when_its_process_ends_then_the_next_one_brings_the_lease_to_its_end(label):
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        crashed = 0
        for phase in TO_END:
            process = world.process(crash_at=label)
            try:
                outcome = await until(world, lease_id, phase, fleet=world.fleet(process))
            except SimCrashError:
                crashed += 1
                outcome = await until(world, lease_id, phase)
            assert isinstance(outcome, Reached), outcome
        assert crashed >= 1
        assert world.ledger.view(lease_id).receipt.is_complete
        assert world.cloud.live() == []
        assert len({job for job, _node in world.nodes.started}) == 1

    run_simulated(play())


def test_release_when_before_launch_then_nothing_was_bought_and_launch_fails_with_words():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        begin_release(world.fleet(), lease_id, who="person", reason="not needed")
        outcome = await until(world, lease_id, Phase.LAUNCH)
        assert isinstance(outcome, Failed)
        assert "not needed" in outcome.reason
        view = await let_go(world, lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert world.cloud.machines == {}

    run_simulated(play())


@pytest.mark.parametrize("seconds", [0.0, 0.2, 1.0, 3.0, 7.0, 15.0, 28.0, 60.0])
def test_release_when_a_zombie_goes_on_launching_then_nothing_is_left(seconds):
    async def play():
        world = fair_world(lags=20.0, seed=int(seconds * 10))
        lease_id = admitted(world)
        zombie = asyncio.ensure_future(through(world, lease_id, TO_RUN))
        await asyncio.sleep(seconds)
        begin_release(world.fleet(), lease_id, who="airflow", reason="marked failed")
        view = await let_go(world, lease_id)
        (result,) = await asyncio.gather(zombie, return_exceptions=True)
        assert isinstance(result, FenceLostError | Failed), result
        assert view.lease.state is LeaseState.RELEASED
        await asyncio.sleep(600)
        assert world.cloud.live() == []
        assert view.lease.release_reason == "marked failed"

    run_simulated(play())


def test_release_when_asked_twice_at_once_then_both_end_well_and_the_first_reason_is_kept():
    async def play():
        world = fair_world(lags=1.0)
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:3])
        begin_release(world.fleet(), lease_id, who="a", reason="first")
        assert begin_release(world.fleet(), lease_id, who="b", reason="second").release_reason == "first"
        both = [converge(world.fleet(), lease_id, Phase.RELEASE, holder=who, budget_s=300) for who in ("a", "b")]
        results = await asyncio.gather(*both, return_exceptions=True)
        assert any(isinstance(result, Reached) for result in results)
        assert all(isinstance(result, Reached | FenceLostError) for result in results)
        assert isinstance(await until(world, lease_id, Phase.RELEASE), Reached)
        assert len(events(world, lease_id, "lease.released")) == 1

    run_simulated(play())


def test_release_when_credentials_are_revoked_then_it_stays_draining_and_says_why():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:4])
        world.cloud.denied = {"list", "get", "terminate"}
        outcome = await until(world, lease_id, Phase.RELEASE, for_s=3600)
        assert isinstance(outcome, Waiting)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.DRAINING
        assert view.nodes[0].is_leak_suspected
        assert view.nodes[0].ended_at is None
        world.cloud.denied = set()
        assert (await let_go(world, lease_id)).lease.state is LeaseState.RELEASED

    run_simulated(play())


def test_two_drivers_when_on_one_step_then_the_older_stops_at_once_and_one_gang_lives():
    async def play():
        world = fair_world(lags=5.0)
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        both = [converge(world.fleet(), lease_id, Phase.LAUNCH, holder=who, budget_s=600) for who in ("a", "b")]
        results = await asyncio.gather(*both, return_exceptions=True)
        assert any(isinstance(result, FenceLostError) for result in results)
        assert isinstance(await through(world, lease_id), Reached)
        assert world.cloud.live() == []

    run_simulated(play())


def test_gang_when_its_zone_has_stock_for_a_part_only_then_all_is_given_back_before_the_next_zone():
    async def play():
        world = fair_world(nodes_asked=3)
        first = ("fake-north-a", "fake.8xh100", CapacityType.SPOT)
        world.cloud.stock[first] = 2
        lease_id = admitted(world)
        assert isinstance(await through(world, lease_id, TO_RUN[:3]), Reached)
        by_zone = {}
        for machine in world.cloud.machines.values():
            by_zone.setdefault(machine.zone, []).append(machine)
        assert len(by_zone["fake-north-a"]) == 2
        assert len(by_zone["fake-north-b"]) == 3
        assert min(m.made_at for m in by_zone["fake-north-b"]) >= max(m.gone_at for m in by_zone["fake-north-a"])
        assert {subject.subject for subject in world.ledger.stock_outs()} <= {"fake/fake-north/fake-north-a/fake.8xh100/spot"}

    run_simulated(play())


def test_stock_out_when_one_lease_met_it_then_another_does_not_try_there():
    async def play():
        world = fair_world()
        world.cloud.order_fault("launch", Fault(error=InsufficientCapacityError("none", scope="type")))
        first, second = admitted(world, 0, nodes=1), admitted(world, 1, nodes=1)
        assert isinstance(await until(world, first, Phase.PLAN), Reached)
        await through(world, first, TO_RUN[1:2])
        assert isinstance(await until(world, first, Phase.LAUNCH, for_s=0), Waiting)
        assert isinstance(await through(world, second, TO_RUN[:3], for_s=0), Waiting)
        assert len(calls(world, "launch")) == 1

    run_simulated(play())


def test_run_when_a_node_freezes_then_it_is_replaced_and_the_job_resumes():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        task = asyncio.ensure_future(until(world, lease_id, Phase.RUN))
        await asyncio.sleep(50)
        victim = world.ledger.view(lease_id).nodes[0].provider_id
        world.nodes.frozen[victim] = world.seconds()
        assert isinstance(await task, Reached)
        view = world.ledger.view(lease_id)
        assert "unreachable" in next(node for node in view.nodes if node.provider_id == victim).ending_reason
        assert view.jobs[-1].resumed_from_step >= 40

    run_simulated(play())


def test_run_when_the_whole_gang_is_silent_for_some_minutes_then_nothing_is_ended():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        task = asyncio.ensure_future(until(world, lease_id, Phase.RUN))
        await asyncio.sleep(30)
        world.nodes.is_network_down = True
        await asyncio.sleep(600)
        world.nodes.is_network_down = False
        assert isinstance(await task, Reached)
        assert len(world.cloud.machines) == 2
        assert len(world.ledger.view(lease_id).jobs) == 1

    run_simulated(play())


def test_run_when_a_rank_fails_by_itself_then_the_job_failed_and_the_work_is_backed_up():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        world.nodes.failing_ranks.add(world.ledger.view(lease_id).nodes[1].provider_id)
        outcome = await until(world, lease_id, Phase.RUN)
        assert isinstance(outcome, Failed)
        assert "the job failed" in outcome.reason
        view = await let_go(world, lease_id)
        assert view.backups[-1].is_verified
        receipt = await until(world, lease_id, Phase.RECEIPT)
        assert isinstance(receipt, Failed)
        assert "the job failed" in receipt.reason

    run_simulated(play())


def test_cleared_run_when_the_lease_is_over_then_it_fails_with_words_and_starts_nothing():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        assert isinstance(await through(world, lease_id), Reached)
        started = len(world.nodes.started)
        outcome = await until(world, lease_id, Phase.RUN)
        assert isinstance(outcome, Failed)
        assert "Trigger a new run" in outcome.reason
        assert len(world.nodes.started) == started

    run_simulated(play())
