"""Public bug reports about nodes at work that the lifecycle must get right, by their number in the project's list."""

import asyncio

from tests.sim.stage import (
    TO_RUN,
    Phase,
    Reached,
    admitted,
    events,
    fair_world,
    let_go,
    only_live,
    run_simulated,
    through,
    until,
)

from hostler.lifecycle.converge import converge
from hostler.lifecycle.release import begin_release
from hostler.model.enums import JobState, LeaseState, Verdict
from hostler.reach.port import JobStatus


def test_b17_when_one_of_four_is_taken_then_the_gang_is_broken_off_refilled_and_resumed():
    async def play():
        world = fair_world(nodes_asked=4)
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        task = asyncio.ensure_future(until(world, lease_id, Phase.RUN))
        await asyncio.sleep(55)
        victim = world.ledger.view(lease_id).nodes[2].provider_id
        world.cloud.reclaim(victim)
        assert isinstance(await task, Reached)
        view = world.ledger.view(lease_id)
        assert [job.state for job in view.jobs] == [JobState.STOPPED, JobState.SUCCEEDED]
        assert view.jobs[1].resumed_from_step >= 40
        assert view.jobs[0].attempt_token != view.jobs[1].attempt_token
        assert len(world.cloud.machines) == 5
        assert {order.restore_step for order in world.nodes.orders if order.job_id.endswith("job-2")} == {
            view.jobs[1].resumed_from_step
        }

    run_simulated(play())


def test_b18_when_a_setup_fails_because_the_node_is_taken_then_it_is_no_failed_setup():
    async def play():
        world = fair_world(settings_changes={"setup_attempts": 1})
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:3])
        machine = only_live(world)
        real = world.nodes.poll_setup

        async def poll_setup(node, job_id):
            if node.provider_id != machine.provider_id:
                return await real(node, job_id)
            world.cloud.reclaim(machine.provider_id)
            return JobStatus(job_id=job_id, state=JobState.FAILED, exit_code=143, error="terminated")

        world.nodes = Replaced(world.nodes, poll_setup=poll_setup)
        assert isinstance(await through(world, lease_id), Reached)
        assert events(world, lease_id, "node.setup_failed") == []
        first = world.ledger.view(lease_id).nodes[0]
        assert "Spot" in first.ending_reason
        assert not first.is_cordoned

    run_simulated(play())


def test_b18_when_a_setup_fails_on_a_node_that_is_there_then_it_is_tried_again_and_then_replaced():
    async def play():
        world = fair_world()
        world.nodes.bad_setups["i-00000001"] = 9
        lease_id = admitted(world, nodes=1)
        assert isinstance(await through(world, lease_id), Reached)
        first, second = world.ledger.view(lease_id).nodes
        assert first.setup_attempt == 2
        assert first.is_cordoned
        assert "driver did not build" in first.ending_reason
        assert second.setup_attempt == 1

    run_simulated(play())


def test_b41_when_a_probe_ends_after_the_node_began_to_go_then_no_health_is_written():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:4])
        real = world.nodes.probe

        async def slow_probe(node):
            document = await real(node)
            await asyncio.sleep(30)
            return {**document, "verdict": "failed"}

        world.nodes = Replaced(world.nodes, probe=slow_probe)
        task = asyncio.ensure_future(converge(world.fleet(), lease_id, Phase.VALIDATE, holder="probe", budget_s=60))
        await asyncio.sleep(5)
        begin_release(world.fleet(), lease_id, who="person", reason="idle timeout")
        view = await let_go(world, lease_id)
        await asyncio.gather(task, return_exceptions=True)
        node = world.ledger.view(lease_id).nodes[0]
        assert node.health is Verdict.UNKNOWN
        assert "idle timeout" in node.ending_reason
        assert view.lease.state is LeaseState.RELEASED

    run_simulated(play())


class Replaced:
    """The simulated nodes, with some calls replaced."""

    def __init__(self, nodes, **calls):
        self._nodes = nodes
        self.__dict__.update(calls)

    def __getattr__(self, name):
        return getattr(self._nodes, name)


def test_b42_when_a_node_is_switched_off_in_the_console_then_it_is_skipped_ended_and_replaced():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:5])
        machine = only_live(world)
        world.cloud.switch_off(machine.provider_id)
        assert isinstance(await through(world, lease_id), Reached)
        assert machine.provider_id not in {node for _job, node in world.nodes.started}
        assert "switched off" in world.ledger.view(lease_id).nodes[0].ending_reason
        assert [e.what for e in events(world, lease_id, "node.stopped")] == ["node.stopped"]

    run_simulated(play())
