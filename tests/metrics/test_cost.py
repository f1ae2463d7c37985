from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from tests.sim.stage import TO_RUN, admitted, fair_world, run_simulated, through

from hostler.metrics.cost import accrued_usd, node_hours, rate_usd_per_hour
from hostler.model.enums import IntentState, NodeState


def _view():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:3])
        return world.ledger.view(lease_id)

    return run_simulated(play())


VIEW = _view()
BEGAN = VIEW.nodes[0].launched_at


def test_cost_when_nodes_run_then_they_bill_from_launch_by_the_hour():
    assert accrued_usd(VIEW, BEGAN) == 0
    assert accrued_usd(VIEW, BEGAN + timedelta(hours=1)) == Decimal(48)
    assert node_hours(VIEW, BEGAN + timedelta(hours=1)) == Decimal(2)
    assert rate_usd_per_hour(VIEW) == Decimal(48)


def test_cost_when_a_clock_runs_behind_then_it_is_never_negative():
    assert accrued_usd(VIEW, BEGAN - timedelta(hours=1)) == 0


def test_cost_when_the_cloud_said_when_it_ended_then_the_interval_is_closed():
    ended_at = BEGAN + timedelta(minutes=7)
    nodes = tuple(replace(node, state=NodeState.GONE, ended_at=ended_at) for node in VIEW.nodes)
    view = replace(VIEW, nodes=nodes)
    assert accrued_usd(view, BEGAN + timedelta(days=1)) == Decimal(48) * 7 / 60
    assert rate_usd_per_hour(view) == 0


def test_cost_when_a_node_is_only_ordered_to_end_then_it_costs_on():
    nodes = tuple(replace(node, state=NodeState.TERMINATING) for node in VIEW.nodes)
    assert rate_usd_per_hour(replace(VIEW, nodes=nodes)) == Decimal(48)


def test_rate_when_a_launch_has_no_answer_then_it_counts_as_running():
    view = replace(VIEW, nodes=(), intents=tuple(replace(intent, state=IntentState.UNKNOWN) for intent in VIEW.intents))
    assert rate_usd_per_hour(view) == Decimal(48)
    assert accrued_usd(view, BEGAN + timedelta(hours=1)) == 0
