"""Rule 2: terminate returns when termination has started, and says not found once the machine is really gone."""

import pytest

from hostler.cloud.driver import MachineState
from hostler.cloud.errors import CloudAuthError, CloudError, CloudThrottledError, NodeNotFoundError

from .conftest import needs

OVER = {MachineState.TERMINATING, MachineState.TERMINATED}


def launched(cloud, **changes) -> str:
    made = cloud.driver.launch(cloud.order(**changes))
    cloud.settle()
    return made.provider_id


def test_terminate_when_running_then_it_is_on_its_way_out(cloud):
    node = launched(cloud)
    cloud.driver.terminate(cloud.region, node)
    assert cloud.live_ids() == frozenset()
    assert cloud.driver.get_node(cloud.region, node).state in OVER


def test_terminate_when_called_again_at_once_then_fine_or_gone(cloud):
    node = launched(cloud)
    cloud.driver.terminate(cloud.region, node)
    try:
        cloud.driver.terminate(cloud.region, node)
    except NodeNotFoundError:
        cloud.settle()
    assert cloud.driver.get_node(cloud.region, node).state in OVER


def test_terminate_when_terminated_but_still_listed_then_not_found_and_get_tells_the_end(cloud):
    node = launched(cloud)
    cloud.driver.terminate(cloud.region, node)
    cloud.settle()
    with pytest.raises(NodeNotFoundError):
        cloud.driver.terminate(cloud.region, node)
    shown = cloud.driver.get_node(cloud.region, node)
    assert shown.state is MachineState.TERMINATED
    assert shown.ended_at is not None
    assert shown.ended_at >= shown.launched_at
    assert node in {machine.provider_id for machine in cloud.driver.list_nodes(cloud.region)}


def test_terminate_when_unknown_then_not_found(cloud):
    with pytest.raises(NodeNotFoundError):
        cloud.driver.terminate(cloud.region, "i-0123456789abcdef0")


def test_terminate_when_the_cloud_is_down_then_a_drawn_error_and_the_machine_still_runs(cloud):
    node = launched(cloud)
    for _ in range(3):
        cloud.break_down("terminate")
        with pytest.raises(CloudError) as error:
            cloud.driver.terminate(cloud.region, node)
        assert not isinstance(error.value, NodeNotFoundError)
        assert cloud.live_ids() == {node}
    cloud.driver.terminate(cloud.region, node)
    assert cloud.live_ids() == frozenset()


def test_terminate_when_throttled_then_not_tried_again_by_the_driver(cloud):
    node = launched(cloud)
    cloud.throttle("terminate")
    with pytest.raises(CloudThrottledError):
        cloud.driver.terminate(cloud.region, node)
    assert cloud.calls("terminate") == 1
    assert cloud.live_ids() == {node}


def test_terminate_when_denied_then_auth_and_it_still_runs(cloud):
    node = launched(cloud)
    cloud.deny("terminate")
    with pytest.raises(CloudAuthError):
        cloud.driver.terminate(cloud.region, node)
    assert cloud.live_ids() == {node}


def test_terminate_when_only_describing_is_denied_then_the_machine_ends(cloud):
    """B01: the role may create and end machines, but not describe them."""
    cloud.deny("get", "list")
    node = cloud.driver.launch(cloud.order()).provider_id
    with pytest.raises(CloudAuthError):
        cloud.driver.get_node(cloud.region, node)
    cloud.driver.terminate(cloud.region, node)


def test_terminate_when_the_machine_is_not_listed_yet_then_it_is_not_lost(cloud):
    """B06: get may not know a young machine; ending it either works or says not found, and never raises anything else."""
    needs(cloud, "lag")
    cloud.lag()
    node = cloud.driver.launch(cloud.order()).provider_id
    with pytest.raises(NodeNotFoundError):
        cloud.driver.get_node(cloud.region, node)
    assert cloud.driver.list_nodes(cloud.region) == ()
    cloud.settle()
    assert cloud.driver.get_node(cloud.region, node).provider_id == node
    cloud.driver.terminate(cloud.region, node)
    assert cloud.live_ids() == frozenset()


def test_terminate_when_a_namesake_is_going_away_then_the_new_one_lives_on(cloud):
    """B10: identity is the id, not the name or the tags that two attempts share."""
    old = launched(cloud)
    cloud.driver.terminate(cloud.region, old)
    new = cloud.driver.launch(cloud.order(attempt=2)).provider_id
    assert new != old
    try:
        cloud.driver.terminate(cloud.region, old)
    except NodeNotFoundError:
        cloud.settle()
    assert cloud.live_ids() == {new}


def test_get_node_when_the_cloud_took_a_spot_machine_then_it_says_so_and_releasing_finds_nothing(cloud):
    needs(cloud, "take")
    node = launched(cloud)
    cloud.take(node)
    cloud.settle()
    shown = cloud.driver.get_node(cloud.region, node)
    assert shown.state is MachineState.TERMINATED
    assert shown.state_reason == "Server.SpotInstanceTermination"
    # EC2 tells no time for these.
    assert shown.ended_at is None or shown.ended_at >= shown.launched_at
    with pytest.raises(NodeNotFoundError):
        cloud.driver.terminate(cloud.region, node)
