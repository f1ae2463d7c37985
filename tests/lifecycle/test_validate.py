"""Validation ends: a node whose health cannot be told is replaced, however short each driver's stay is."""

import asyncio

from tests.sim.stage import TO_RUN, Phase, Reached, admitted, fair_world, run_simulated, through, until

from hostler.lifecycle.converge import converge


def test_validate_when_health_stays_unknown_and_each_driver_leaves_after_one_probe_then_the_node_is_replaced():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:4])
        sick = world.ledger.view(lease_id).nodes[0]
        world.nodes.verdicts[sick.provider_id] = "unknown"
        for _ in range(3):
            await converge(world.fleet(), lease_id, Phase.VALIDATE, holder="x", budget_s=0)
            await asyncio.sleep(12)
        ended = next(node for node in world.ledger.view(lease_id).nodes if node.node_name == sick.node_name)
        assert ended.ending_reason.startswith("validate: unknown")
        assert ended.is_cordoned
        assert isinstance(await until(world, lease_id, Phase.VALIDATE), Reached)

    run_simulated(play())
