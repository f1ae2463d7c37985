"""A node that lost our tag runs on: that is no word of the cloud that it is gone."""

from tests.sim.stage import TO_RUN, Phase, Waiting, admitted, fair_world, let_go, run_simulated, through, until

from hostler.cloud.tags import DEPLOYMENT
from hostler.model.enums import LeaseState, NodeState


def test_release_when_somebody_took_our_tags_off_a_running_node_then_it_is_never_called_gone():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN)
        machine = next(iter(world.cloud.machines.values()))
        tag = machine.tags.pop(DEPLOYMENT)
        assert isinstance(await until(world, lease_id, Phase.RELEASE, for_s=3000), Waiting)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.DRAINING
        assert view.nodes[0].state is NodeState.TERMINATING
        assert view.nodes[0].is_leak_suspected
        machine.tags[DEPLOYMENT] = tag
        assert (await let_go(world, lease_id)).lease.state is LeaseState.RELEASED
        assert world.cloud.live() == []

    run_simulated(play())
