"""Rule 1: launch is idempotent on its intent, returns before the machine is ready, and names what it made."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from hostler.cloud.driver import MachineState
from hostler.cloud.errors import (
    AlreadyExistsError,
    AnswerLostError,
    CloudAuthError,
    CloudConfigError,
    CloudThrottledError,
    InsufficientCapacityError,
    QuotaExceededError,
)
from hostler.cloud.tags import DEPLOYMENT, INTENT
from hostler.model.enums import CapacityType

from .conftest import needs


def test_launch_when_ordered_then_the_machine_is_the_ordered_one(cloud):
    order = cloud.order()
    made = cloud.driver.launch(order)
    assert made.state in {MachineState.PENDING, MachineState.RUNNING}
    assert (made.region, made.zone, made.instance_type) == (cloud.region, cloud.zones[0], order.offering.instance_type)
    assert made.capacity_type is CapacityType.SPOT
    assert dict(made.tags) == dict(order.tags)
    assert made.launched_at is not None
    assert made.ended_at is None
    assert cloud.live_ids() == {made.provider_id}


def test_launch_when_settled_then_it_runs_and_has_an_address(cloud):
    made = cloud.driver.launch(cloud.order())
    cloud.settle()
    now = cloud.driver.get_node(cloud.region, made.provider_id)
    assert now.state is MachineState.RUNNING
    assert now.address


def test_launch_when_ordered_twice_then_one_machine(cloud):
    needs(cloud, "tokens")
    first = cloud.driver.launch(cloud.order())
    second = cloud.driver.launch(cloud.order())
    assert first.provider_id == second.provider_id
    assert len(cloud.live_ids()) == 1


def test_launch_when_sixteen_threads_order_the_same_then_one_machine(cloud):
    needs(cloud, "tokens")
    order = cloud.order()
    with ThreadPoolExecutor(16) as pool:
        made = {machine.provider_id for machine in pool.map(lambda _: cloud.driver.launch(order), range(16))}
    assert len(made) == 1
    assert cloud.live_ids() == made


def test_launch_when_token_is_used_in_another_zone_then_it_is_another_machine(cloud):
    needs(cloud, "tokens", "zones")
    order = cloud.order()
    elsewhere = replace(order, offering=cloud.order(zone=cloud.zones[1]).offering)
    assert cloud.driver.launch(order).provider_id != cloud.driver.launch(elsewhere).provider_id


def test_launch_when_same_token_means_another_machine_then_already_exists(cloud):
    needs(cloud, "tokens")
    order = cloud.order()
    made = cloud.driver.launch(order)
    with pytest.raises(AlreadyExistsError):
        cloud.driver.launch(replace(order, user_data="#cloud-config\nruncmd: [true]\n"))
    assert cloud.live_ids() == {made.provider_id}
    # B47: what is there already is found by its tag, to be adopted.
    cloud.settle()
    assert [found.provider_id for found in cloud.driver.list_nodes(cloud.region, {INTENT: order.name})] == [made.provider_id]


def test_launch_when_tokens_machine_is_dead_then_already_exists_and_nothing_is_bought(cloud):
    needs(cloud, "tokens")
    made = cloud.driver.launch(cloud.order())
    cloud.settle()
    cloud.driver.terminate(cloud.region, made.provider_id)
    cloud.settle()
    with pytest.raises(AlreadyExistsError):
        cloud.driver.launch(cloud.order())
    assert cloud.live_ids() == frozenset()


def test_launch_when_answer_is_lost_then_says_so_and_the_machine_is_found_by_tag(cloud):
    order = cloud.order()
    cloud.lose_answer()
    with pytest.raises(AnswerLostError):
        cloud.driver.launch(order)
    cloud.settle()
    found = cloud.driver.list_nodes(cloud.region, {INTENT: order.name})
    assert [machine.provider_id for machine in found] == list(cloud.live_ids())
    assert len(found) == 1


def test_launch_when_answer_is_lost_then_the_same_order_finds_the_same_machine(cloud):
    needs(cloud, "tokens")
    cloud.lose_answer()
    with pytest.raises(AnswerLostError):
        cloud.driver.launch(cloud.order())
    assert {cloud.driver.launch(cloud.order()).provider_id} == cloud.live_ids()


def test_launch_when_zone_is_empty_then_no_capacity_there_and_another_zone_serves(cloud):
    needs(cloud, "stock")
    cloud.empty(cloud.zones[0])
    with pytest.raises(InsufficientCapacityError) as error:
        cloud.driver.launch(cloud.order())
    assert error.value.scope == "zone"
    assert cloud.live_ids() == frozenset()
    assert cloud.driver.launch(cloud.order(attempt=2, zone=cloud.zones[1])).zone == cloud.zones[1]


def test_launch_when_quota_is_used_up_then_it_is_named_in_the_clouds_unit(cloud):
    needs(cloud, "quota")
    cloud.limit(1)
    cloud.driver.launch(cloud.order(kind=CapacityType.ON_DEMAND))
    with pytest.raises(QuotaExceededError) as error:
        cloud.driver.launch(cloud.order(slot=1, kind=CapacityType.ON_DEMAND))
    assert error.value.unit == "vCPU"
    assert error.value.quota
    assert len(cloud.live_ids()) == 1


def test_launch_when_throttled_then_not_made_and_not_tried_again(cloud):
    cloud.throttle("launch")
    with pytest.raises(CloudThrottledError) as error:
        cloud.driver.launch(cloud.order())
    assert error.value.retry_after_s == cloud.retry_after_s
    assert cloud.calls("launch") == 1
    assert cloud.live_ids() == frozenset()
    assert {cloud.driver.launch(cloud.order()).provider_id} == cloud.live_ids()


def test_launch_when_denied_then_auth_and_nothing_is_made(cloud):
    cloud.deny("launch")
    with pytest.raises(CloudAuthError):
        cloud.driver.launch(cloud.order())
    assert cloud.live_ids() == frozenset()


def test_launch_when_type_is_unknown_then_config_error_and_nothing_is_made(cloud):
    needs(cloud, "stock")
    order = cloud.order()
    wrong = replace(order, offering=replace(order.offering, instance_type="nosuch.type"))
    with pytest.raises(CloudConfigError):
        cloud.driver.launch(wrong)
    assert cloud.live_ids() == frozenset()


def test_launch_when_tags_were_kept_then_they_are_those_of_this_deployment(cloud):
    made = cloud.driver.launch(cloud.order())
    assert made.tags[DEPLOYMENT] == cloud.deployment
