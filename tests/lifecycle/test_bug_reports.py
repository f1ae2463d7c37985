"""Public bug reports about buying and letting go that the lifecycle must get right, by their number in the project's list."""

import asyncio
import contextlib
from datetime import timedelta

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

from hostler.cloud.errors import AlreadyExistsError, AnswerLostError, CloudThrottledError, CloudUnavailableError
from hostler.drivers.fake.cloud import Fault
from hostler.lifecycle.converge import converge
from hostler.lifecycle.freshness import note_reconciled
from hostler.lifecycle.release import begin_release
from hostler.model.enums import CapacityType, LeaseState, NodeState


def test_b01_when_create_is_allowed_and_describe_denied_then_node_is_ended_and_the_original_error_kept():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        world.cloud.denied = {"list", "get"}
        outcome = await through(world, lease_id, TO_RUN)
        assert isinstance(outcome, Failed)
        assert outcome.is_permanent
        assert "UnauthorizedOperation" in outcome.reason
        assert "list" in outcome.reason
        assert [call.outcome for call in calls(world, "terminate")] == ["ok"]
        await asyncio.sleep(60)
        assert world.cloud.live() == []

    run_simulated(play())


def test_b01_when_terminate_is_denied_too_then_node_stays_leak_suspected_until_the_cloud_lets_it_go():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        world.cloud.denied = {"list", "get", "terminate"}
        outcome = await through(world, lease_id, TO_RUN)
        assert "perform list" in outcome.reason
        (node,) = world.ledger.view(lease_id).nodes
        assert node.is_leak_suspected
        assert node.state is NodeState.TERMINATING
        assert isinstance(await until(world, lease_id, Phase.RELEASE, for_s=600), Waiting)
        assert world.ledger.view(lease_id).lease.state is LeaseState.DRAINING
        world.cloud.denied = set()
        view = await let_go(world, lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert not view.nodes[0].is_leak_suspected

    run_simulated(play())


def test_b01_when_the_failure_is_not_the_clouds_then_a_good_node_is_not_ended():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:3])
        process = world.process(crash_at="write:setup-started:after")
        with contextlib.suppress(SimCrashError):
            await converge(world.fleet(process), lease_id, Phase.SETUP, holder="x", budget_s=60)
        assert isinstance(await through(world, lease_id, TO_RUN), Reached)
        assert len(world.cloud.machines) == 1

    run_simulated(play())


def test_b02_when_killed_after_the_create_and_before_the_id_is_kept_then_teardown_finds_the_node_by_tag():
    async def play():
        for label in ("launch:after", "write:node-launched:before"):
            world = fair_world()
            lease_id = admitted(world, nodes=1)
            await through(world, lease_id, TO_RUN[:2])
            process = world.process(crash_at=label)
            try:
                await converge(world.fleet(process), lease_id, Phase.LAUNCH, holder="x", budget_s=60)
                raise AssertionError("it was to crash")
            except SimCrashError:
                pass
            assert world.ledger.view(lease_id).nodes == ()
            assert len(world.cloud.live()) == 1
            view = await let_go(world, lease_id)
            assert [node.state for node in view.nodes] == [NodeState.GONE]
            assert world.cloud.live() == []

    run_simulated(play())


def test_b04_when_the_wait_is_over_and_the_step_tried_again_then_the_running_job_is_attached_to():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        for _ in range(3):
            assert isinstance(await converge(world.fleet(), lease_id, Phase.RUN, holder="x", budget_s=15), Waiting)
        assert isinstance(await until(world, lease_id, Phase.RUN), Reached)
        assert len(world.ledger.view(lease_id).jobs) == 1
        assert len(world.nodes.started) == 2

    run_simulated(play())


def test_b04_when_killed_between_job_row_and_start_then_the_same_attempt_is_started_once():
    async def play():
        for label in ("write:job-opened:after", "start-job:after", "write:job-running:before"):
            world = fair_world()
            lease_id = admitted(world)
            await through(world, lease_id, TO_RUN[:5])
            try:
                await converge(world.fleet(world.process(crash_at=label)), lease_id, Phase.RUN, holder="x", budget_s=15)
                raise AssertionError("it was to crash")
            except SimCrashError:
                pass
            assert isinstance(await until(world, lease_id, Phase.RUN), Reached)
            assert {job for job, _node in world.nodes.started} == {f"{lease_id}-job-1"}
            assert len(world.nodes.started) == 2

    run_simulated(play())


def test_b06_when_a_young_node_is_not_listed_yet_then_it_is_kept():
    async def play():
        world = fair_world()
        world.cloud.list_lag_s = 45.0
        lease_id = admitted(world)
        assert isinstance(await through(world, lease_id), Reached)
        assert len(world.cloud.machines) == 2
        assert all(node.ending_reason.startswith("release") for node in world.ledger.view(lease_id).nodes)

    run_simulated(play())


def test_b07_when_fifty_launch_side_by_side_in_bad_weather_then_cloud_and_ledger_agree():
    async def play():
        world = fair_world()
        for number in range(1, 400):
            if world.rng.random() < 0.3:
                world.nodes.bad_setups[f"i-{number:08x}"] = 9
        world.cloud.chaos = lambda call, _s: (
            Fault(error=CloudThrottledError("slow down", retry_after_s=2.0)) if world.rng.random() < 0.3 else None
        )
        leases = [admitted(world, number, nodes=1) for number in range(50)]
        outcomes = await asyncio.gather(*(through(world, lease_id) for lease_id in leases))
        done = sum(1 for outcome in outcomes if isinstance(outcome, Reached))
        assert done >= 45  # four bad nodes in a row end a lease, with words
        for lease_id, outcome in zip(leases, outcomes, strict=True):
            if isinstance(outcome, Failed):
                assert "replacements used up" in outcome.reason
                await let_go(world, lease_id)
        owned = {node.provider_id for lease_id in leases for node in world.ledger.view(lease_id).nodes}
        assert owned == set(world.cloud.machines)
        assert len(owned) == sum(len(world.ledger.view(lease_id).nodes) for lease_id in leases)
        assert world.cloud.live() == []

    run_simulated(play())


def test_b08_when_a_stopped_node_cannot_be_ended_then_it_is_never_started_and_no_second_one_is_made_anywhere():
    """No start is ever called, so none can fail over; the slot waits for the stopped machine's end."""

    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:5])
        stopped = only_live(world)
        world.cloud.switch_off(stopped.provider_id)
        world.cloud.refuses_end_until = world.now() + timedelta(hours=1)
        await until(world, lease_id, Phase.RUN, for_s=1800)
        assert len(calls(world, "launch")) == 1
        assert len(world.cloud.machines) == 1
        assert {call.name for call in world.cloud.calls} <= {"launch", "terminate", "list", "get", "offerings", "interruptions"}
        await asyncio.sleep(1900)
        note_reconciled(world.fleet(), world.now())  # the second net has watched all the time
        assert isinstance(await through(world, lease_id), Reached)
        assert len(calls(world, "launch")) == 2

    run_simulated(play())


def test_b10_when_a_former_node_of_the_slot_is_still_dying_then_the_new_one_waits_and_has_its_own_identity():
    async def play():
        world = fair_world()
        world.cloud.ending_s = 120.0
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:3])
        first = only_live(world)
        world.cloud.reclaim(first.provider_id)
        assert isinstance(await through(world, lease_id), Reached)
        second = next(m for m in world.cloud.machines.values() if m is not first)
        assert second.name != first.name
        assert second.token != first.token
        assert second.made_at >= first.gone_at
        assert [call.subject for call in calls(world, "terminate")] == [second.provider_id]

    run_simulated(play())


def test_b11_when_terminate_is_refused_for_an_hour_then_the_node_is_never_called_gone_and_tried_without_end():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN)
        world.cloud.refuses_end_until = world.now().replace(hour=1)
        assert isinstance(await until(world, lease_id, Phase.RELEASE, for_s=3000), Waiting)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.DRAINING
        assert view.nodes[0].state is NodeState.TERMINATING
        assert view.nodes[0].ended_at is None
        assert events(world, lease_id, "node.end_refused")
        view = await let_go(world, lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert view.nodes[0].ended_at == world.cloud.machines[view.nodes[0].provider_id].gone_at

    run_simulated(play())


def test_b11_when_terminate_answers_500_then_nothing_is_gone_either():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:3])
        world.cloud.order_fault("terminate", *[Fault(error=CloudUnavailableError("500")) for _ in range(5)])
        view = await let_go(world, lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert len(calls(world, "terminate")) >= 6

    run_simulated(play())


def test_b12_when_the_run_is_cancelled_while_the_create_is_under_way_then_the_node_is_ended():
    async def play():
        world = fair_world(lags=30.0)
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:2])
        zombie = asyncio.ensure_future(converge(world.fleet(), lease_id, Phase.LAUNCH, holder="zombie", budget_s=300))
        while not world.ledger.view(lease_id).intents:  # noqa: ASYNC110 - simulated time: nothing is awaited for real
            await asyncio.sleep(0.5)
        begin_release(world.fleet(), lease_id, who="airflow", reason="marked failed")
        view = await let_go(world, lease_id)
        await asyncio.gather(zombie, return_exceptions=True)
        assert view.lease.state is LeaseState.RELEASED
        assert world.nodes.started == []
        assert world.cloud.live() == []

    run_simulated(play())


def test_b45_when_nothing_can_be_launched_then_the_step_fails_and_is_never_reached():
    async def play():
        world = fair_world()
        for kind in CapacityType:
            world.cloud.quotas["fake-north", kind] = 0
        lease_id = admitted(world, nodes=1)
        outcome = await through(world, lease_id, TO_RUN)
        assert isinstance(outcome, Failed)
        assert outcome.phase is Phase.LAUNCH
        assert "VcpuLimitExceeded" in outcome.reason
        assert "vCPU" in outcome.reason
        assert (await until(world, lease_id, Phase.RUN)).reason == outcome.reason

    run_simulated(play())


def test_b47_when_the_read_after_the_insert_is_throttled_and_the_insert_said_to_exist_then_the_node_is_adopted():
    async def play():
        for error in (AlreadyExistsError("409"), AnswerLostError("cut")):
            world = fair_world()
            lease_id = admitted(world, nodes=1)
            world.cloud.order_fault("launch", Fault(error=error, when="after"))
            world.cloud.order_fault("list", *[Fault(error=CloudThrottledError("403 quota", retry_after_s=5)) for _ in range(4)])
            assert isinstance(await through(world, lease_id, TO_END), Reached)
            assert len(world.cloud.machines) == 1
            assert len(calls(world, "launch")) == 1
            assert events(world, lease_id, "intent.adopted")

    run_simulated(play())


def test_b47_when_the_insert_itself_is_throttled_then_the_same_call_is_made_again():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        world.cloud.order_fault("launch", *[Fault(error=CloudThrottledError("slow", retry_after_s=3)) for _ in range(3)])
        assert isinstance(await through(world, lease_id, TO_END), Reached)
        assert len({call.subject for call in calls(world, "launch")}) == 1
        assert len(calls(world, "launch")) == 4

    run_simulated(play())
