"""What only EC2 has: notices, reservations, prices by zone, machines that come up after a refusal. On the sandbox."""

import pytest
from tests.clouds import aws

from hostler.cloud.driver import MachineState, OfferingQuery
from hostler.cloud.errors import AnswerLostError, CloudConfigError, InsufficientCapacityError, SpotUnavailableError
from hostler.cloud.tags import INTENT
from hostler.model.enums import CapacityType

from .harness_sandbox import SandboxUnderTest

pytestmark = pytest.mark.sandbox


@pytest.fixture
def cloud(sandbox, monkeypatch):
    aws.use_endpoint(monkeypatch, sandbox.aws_url)
    yield SandboxUnderTest(sandbox)
    # An active reservation holds stock and quota, as it does at EC2.
    ec2 = aws.owner()
    aws.end_all(ec2)
    sandbox.settle()
    for reservation in ec2.describe_capacity_reservations()["CapacityReservations"]:
        ec2.cancel_capacity_reservation(CapacityReservationId=reservation["CapacityReservationId"])
    sandbox.reset()


def launched(cloud, **changes) -> str:
    made = cloud.driver.launch(cloud.order(**changes))
    cloud.settle()
    return made.provider_id


def test_launch_when_zone_is_empty_then_the_zones_with_stock_are_named(cloud):
    cloud.empty(cloud.zones[0])
    with pytest.raises(InsufficientCapacityError) as error:
        cloud.driver.launch(cloud.order(kind=CapacityType.ON_DEMAND))
    assert error.value.code == "InsufficientInstanceCapacity"
    assert cloud.zones[0] not in error.value.suggested_zones
    assert cloud.zones[1] in error.value.suggested_zones


def test_launch_when_spot_quota_is_used_up_then_spot_unavailable_and_on_demand_serves(cloud, sandbox):
    sandbox.post("quota", region=cloud.region, instance_type="g6.xlarge", capacity_type="spot", vcpus=0)
    with pytest.raises(SpotUnavailableError):
        cloud.driver.launch(cloud.order())
    assert cloud.driver.launch(cloud.order(kind=CapacityType.ON_DEMAND)).capacity_type is CapacityType.ON_DEMAND


def test_launch_when_refused_and_it_comes_up_anyway_then_lost_and_found_by_tag_later(cloud, sandbox):
    """B15: the cloud said no, and minutes later the machine is there."""
    order = cloud.order()
    sandbox.post("fault", kind="late_create", action="RunInstances", delay_s=120)
    with pytest.raises(AnswerLostError):
        cloud.driver.launch(order)
    cloud.settle()
    assert cloud.driver.list_nodes(cloud.region, {INTENT: order.name}) == ()
    cloud.settle()
    cloud.settle()
    assert len(cloud.driver.list_nodes(cloud.region, {INTENT: order.name})) == 1


def test_list_interruptions_when_spot_is_marked_then_the_notice_has_its_time(cloud, sandbox):
    node, other = launched(cloud), launched(cloud, slot=1)
    assert cloud.driver.list_interruptions(cloud.region) == ()
    sandbox.post("interrupt", machine_id=node, notice_s=120)
    (notice,) = cloud.driver.list_interruptions(cloud.region)
    assert (notice.provider_id, notice.kind) == (node, "interruption")
    assert notice.takes_effect_at is not None
    assert 0 < (notice.takes_effect_at - notice.noticed_at).total_seconds() <= 120
    cloud.settle()
    cloud.settle()
    cloud.settle()
    assert [item.provider_id for item in cloud.driver.list_interruptions(cloud.region)] == [node]
    assert cloud.live_ids() == {other}


def test_list_interruptions_when_we_ended_it_then_none(cloud):
    cloud.driver.terminate(cloud.region, launched(cloud))
    cloud.settle()
    assert cloud.driver.list_interruptions(cloud.region) == ()


def test_list_interruptions_when_maintenance_is_scheduled_then_only_ours_is_told(cloud, sandbox):
    node, stranger = launched(cloud), cloud.put_foreign({})
    cloud.settle()
    for machine in (node, stranger):
        sandbox.post("event", machine_id=machine, code="instance-retirement", in_s=86400)
    (notice,) = cloud.driver.list_interruptions(cloud.region)
    assert (notice.provider_id, notice.kind) == (node, "maintenance")
    assert notice.takes_effect_at is not None


def test_list_offerings_when_spot_differs_by_zone_then_so_do_the_prices(cloud, sandbox):
    sandbox.post("price", instance_type="g6.xlarge", zone=cloud.zones[0], usd_per_hour="0.1111")
    sandbox.post("price", instance_type="g6.xlarge", zone=cloud.zones[1], usd_per_hour="0.2222")
    found = {
        (offering.zone, offering.capacity_type): str(offering.price_usd_per_hour)
        for offering in cloud.driver.list_offerings(cloud.query())
        if offering.instance_type == "g6.xlarge"
    }
    assert found[cloud.zones[0], CapacityType.SPOT].startswith("0.1111")
    assert found[cloud.zones[1], CapacityType.SPOT].startswith("0.2222")
    assert found[cloud.zones[1], CapacityType.ON_DEMAND] == "0.8048"


def reserved(cloud, *, zone: str, count: int = 1):
    made = aws.owner().create_capacity_reservation(
        InstanceType="g6.xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=zone,
        InstanceCount=count,
        InstanceMatchCriteria="targeted",
    )
    reservation = made["CapacityReservation"]["CapacityReservationId"]
    kinds = {"capacity_types": ["reserved", "on-demand"], "reservations": [reservation]}
    return aws.driver(aws.image_of(aws.owner()), deployment=cloud.deployment, **kinds)


def test_launch_when_reserved_then_it_is_in_the_reservation_until_that_is_full(cloud):
    driver = reserved(cloud, zone=cloud.zones[0])
    made = driver.launch(cloud.order(kind=CapacityType.RESERVED))
    assert made.state is MachineState.PENDING
    with pytest.raises(CloudConfigError, match="ReservationCapacityExceeded"):
        driver.launch(cloud.order(slot=1, kind=CapacityType.RESERVED))
    with pytest.raises(CloudConfigError, match=r"none for g6\.xlarge in us-east-1b"):
        driver.launch(cloud.order(slot=2, kind=CapacityType.RESERVED, zone=cloud.zones[1]))
    cloud.settle()
    assert driver.get_node(cloud.region, made.provider_id).capacity_type is CapacityType.RESERVED


def test_list_offerings_when_reserved_then_only_where_there_is_room(cloud):
    driver = reserved(cloud, zone=cloud.zones[1])
    query = OfferingQuery(accelerator="L4", accelerators_per_node=1, capacity_types=(CapacityType.RESERVED,))
    usable = [offering for offering in driver.list_offerings(query) if offering.is_available]
    assert [(offering.zone, offering.instance_type) for offering in usable] == [(cloud.zones[1], "g6.xlarge")]


def test_launch_when_another_deployment_orders_the_same_then_each_gets_its_own(cloud):
    order = cloud.order()
    other = aws.driver(aws.image_of(aws.owner()), deployment="other")
    theirs = other.launch(aws.order(deployment="other", zone=order.offering.zone, capacity_type=CapacityType.SPOT))
    ours = cloud.driver.launch(order)
    assert ours.provider_id != theirs.provider_id
