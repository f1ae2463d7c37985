"""Rules 3 and 4: only our machines, all of them; offerings with the reason why not. Rules 5 and 6 for the reads."""

import pytest

from hostler.cloud.driver import SupportsForeignView
from hostler.cloud.errors import (
    CloudAuthError,
    CloudThrottledError,
    CloudUnavailableError,
    NodeNotFoundError,
)
from hostler.cloud.tags import DEPLOYMENT, INTENT, LEASE, NAME

from .conftest import needs
from .harness import PAGE_SIZE

SHARED = ("another deployment", "look-alike name", "our id as a prefix", "our id as a wildcard", "no tags", "scaling group's")


def foreign_tags(who: str, deployment: str) -> dict[str, str]:
    """B14: what else may be in an account."""
    return {
        "another deployment": {DEPLOYMENT: "other-deployment", LEASE: "lease0", NAME: "hostler-lease0-0-1"},
        "look-alike name": {NAME: "hostler-lease0-0-1"},
        "our id as a prefix": {DEPLOYMENT: f"{deployment}-b"},
        "our id as a wildcard": {DEPLOYMENT: f"{deployment}*"},
        "no tags": {},
        "scaling group's": {DEPLOYMENT: deployment, "karpenter.sh/nodepool": "gpu"},
    }[who]


def ids(machines) -> set[str]:
    return {machine.provider_id for machine in machines}


@pytest.mark.parametrize("who", [who for who in SHARED if who != "scaling group's"])
def test_every_call_when_machine_is_not_ours_then_it_is_neither_shown_nor_touched(cloud, who):
    stranger = cloud.put_foreign(foreign_tags(who, cloud.deployment))
    ours = cloud.driver.launch(cloud.order()).provider_id
    cloud.settle()
    assert ids(cloud.driver.list_nodes(cloud.region)) == {ours}
    assert ids(cloud.driver.list_nodes(cloud.region, {LEASE: "lease0"})) == {ours}
    with pytest.raises(NodeNotFoundError):
        cloud.driver.get_node(cloud.region, stranger)
    with pytest.raises(NodeNotFoundError):
        cloud.driver.terminate(cloud.region, stranger)
    assert cloud.live_ids() == {ours, stranger}


def test_list_foreign_when_others_are_there_then_they_are_reported_and_ours_are_not(cloud):
    if not isinstance(cloud.driver, SupportsForeignView):
        pytest.skip("the driver has no foreign view")
    strangers = {cloud.put_foreign(foreign_tags(who, cloud.deployment)) for who in SHARED}
    ours = cloud.driver.launch(cloud.order()).provider_id
    cloud.settle()
    shown = ids(cloud.driver.list_foreign(cloud.region))
    assert shown == strangers
    assert ours not in shown


def test_list_nodes_when_there_are_several_pages_then_all_are_listed_once(cloud):
    made = {cloud.driver.launch(cloud.order(slot=slot)).provider_id for slot in range(2 * PAGE_SIZE + 2)}
    cloud.settle()
    found = [machine.provider_id for machine in cloud.driver.list_nodes(cloud.region) if machine.provider_id in made]
    assert sorted(found) == sorted(made)


def test_list_nodes_when_tags_are_asked_then_all_must_match(cloud):
    first = cloud.driver.launch(cloud.order(lease="lease1")).provider_id
    cloud.driver.launch(cloud.order(lease="lease2"))
    cloud.settle()
    assert ids(cloud.driver.list_nodes(cloud.region, {LEASE: "lease1"})) == {first}
    assert ids(cloud.driver.list_nodes(cloud.region, {LEASE: "lease1", INTENT: "lease2-0-1"})) == set()
    assert ids(cloud.driver.list_nodes(cloud.region, {LEASE: "lease?"})) == set()


def test_get_node_when_throttled_then_that_and_not_missing(cloud):
    """B47: a throttled read says nothing about the machine, and a second launch adopts it."""
    node = cloud.driver.launch(cloud.order()).provider_id
    cloud.settle()
    cloud.throttle("get")
    with pytest.raises(CloudThrottledError):
        cloud.driver.get_node(cloud.region, node)
    assert cloud.driver.get_node(cloud.region, node).provider_id == node
    needs(cloud, "tokens")
    assert cloud.driver.launch(cloud.order()).provider_id == node


@pytest.mark.parametrize("call", ["get", "list", "offerings", "interruptions", "foreign"])
@pytest.mark.parametrize(
    ("fault", "kind"), [("throttle", CloudThrottledError), ("break_down", CloudUnavailableError), ("deny", CloudAuthError)]
)
def test_reads_when_they_fail_then_drawn_and_never_tried_again(cloud, call, fault, kind):
    reads = {
        "get": lambda: cloud.driver.get_node(cloud.region, "i-0123456789abcdef0"),
        "list": lambda: cloud.driver.list_nodes(cloud.region),
        "offerings": lambda: cloud.driver.list_offerings(cloud.query()),
        "interruptions": lambda: cloud.driver.list_interruptions(cloud.region),
        "foreign": lambda: cloud.driver.list_foreign(cloud.region),
    }
    before = cloud.calls(call)
    getattr(cloud, fault)(call)
    with pytest.raises(kind):
        reads[call]()
    assert cloud.calls(call) <= before + 1


def test_list_offerings_when_asked_then_every_zone_and_capacity_type_with_price_or_reason(cloud):
    found = cloud.driver.list_offerings(cloud.query())
    assert {offering.zone for offering in found} >= set(cloud.zones)
    assert {offering.capacity_type for offering in found} == set(cloud.query().capacity_types)
    assert len({offering.key for offering in found}) == len(found)
    for offering in found:
        assert offering.is_available == (offering.unavailable_reason is None)
        assert offering.price_usd_per_hour is None or offering.price_usd_per_hour > 0
        assert (offering.accelerator, offering.accelerator_count) == ("L4", 1)


def test_list_offerings_when_nobody_sells_it_then_empty(cloud):
    query = type(cloud.query())(accelerator="L4", accelerators_per_node=13, capacity_types=cloud.query().capacity_types)
    assert cloud.driver.list_offerings(query) == ()


def test_list_interruptions_when_nothing_is_ours_then_empty(cloud):
    assert cloud.driver.list_interruptions(cloud.region) == ()
