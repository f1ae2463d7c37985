import time

import pytest
from tests.sandbox.aws.test_launch import refused

TAG = {"ResourceType": "instance", "Tags": [{"Key": "hostler:deployment", "Value": "d"}]}


def ids_of(reply):
    return [one["InstanceId"] for reservation in reply["Reservations"] for one in reservation["Instances"]]


def test_pages_when_launched_in_one_reservation_then_max_results_counts_instances(rig):
    made = ids_of({"Reservations": [rig.run(instance_type="g5.xlarge", count=12, TagSpecifications=[TAG])]})
    filters = [
        {"Name": "tag:hostler:deployment", "Values": ["d"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    pages = list(rig.ec2.get_paginator("describe_instances").paginate(Filters=filters, PaginationConfig={"PageSize": 5}))
    assert [len(ids_of(page)) for page in pages] == [5, 5, 2]
    assert [one for page in pages for one in ids_of(page)] == made


@pytest.mark.parametrize("size", [1, 1001])
def test_pages_when_the_size_is_out_of_range_then_refused(rig, size):
    with refused("InvalidParameterValue"):
        rig.ec2.describe_instances(MaxResults=size)


def test_pages_when_ids_are_named_too_then_refused(rig):
    one = rig.run_one()
    with refused("InvalidParameterCombination"):
        rig.ec2.describe_instances(MaxResults=5, InstanceIds=[one])
    with refused("InvalidNextToken"):
        rig.ec2.describe_instances(MaxResults=5, NextToken="nonsense")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client-token", "token-?"),
        ("instance-lifecycle", "spot"),
        ("instance-type", "g6.*"),
        ("tag-key", "hostler:*"),
        ("availability-zone", "us-east-1c"),
        ("image-id", "ami-*"),
    ],
)
def test_filters_when_one_matches_then_only_it(rig, name, value):
    rig.sandbox.estate.delays = type(rig.sandbox.estate.delays)(pending_s=0.01, shutting_down_s=0.01, listed_s=0.01)
    wanted = rig.run_one("us-east-1c", "g6.xlarge", spot=True, ClientToken="token-1", TagSpecifications=[TAG])
    other = rig.run_one("us-east-1a", "g5.xlarge")
    found = ids_of(rig.ec2.describe_instances(Filters=[{"Name": name, "Values": [value]}]))
    assert wanted in found
    assert (other in found) == (name == "image-id")


def test_filters_when_unknown_then_refused_also_without_instances(rig):
    with refused("InvalidParameterValue"):
        rig.client("ec2", "us-west-2").describe_instances(Filters=[{"Name": "colour", "Values": ["red"]}])


def test_instances_when_of_another_region_then_unknown(rig):
    one = rig.run_one()
    with refused("InvalidInstanceID.NotFound"):
        rig.show(one, "us-west-2")
    with refused("InvalidInstanceID.Malformed"):
        rig.show("nonsense")


def test_spot_prices_when_asked_then_real_and_of_now(rig):
    rig.post("price", zone="us-east-1c", instance_type="p5.48xlarge", usd_per_hour=20)
    found = rig.ec2.describe_spot_price_history(InstanceTypes=["p5.48xlarge"], StartTime=rig.sandbox.clock.now())
    by_zone = {one["AvailabilityZone"]: float(one["SpotPrice"]) for one in found["SpotPriceHistory"]}
    assert by_zone["us-east-1c"] == 20
    assert all(16 <= price < 39 for price in by_zone.values())
    ages = {(rig.sandbox.clock.now() - one["Timestamp"]).total_seconds() for one in found["SpotPriceHistory"]}
    assert max(ages) < 60


def test_statuses_when_running_then_initializing_then_ok_and_events_show(rig):
    one = rig.run_one()
    rig.pass_s(1)
    asked = {"InstanceIds": [one]}
    assert rig.ec2.describe_instance_status(**asked)["InstanceStatuses"][0]["InstanceStatus"]["Status"] == "initializing"
    rig.pass_s(60)
    rig.post("event", machine_id=one, code="instance-retirement", in_s=600)
    status = rig.ec2.describe_instance_status(**asked)["InstanceStatuses"][0]
    assert status["InstanceStatus"]["Status"] == "ok"
    assert status["Events"][0]["Code"] == "instance-retirement"
    named = [{"Name": "event.code", "Values": ["instance-retirement"]}]
    assert len(rig.ec2.describe_instance_status(Filters=named)["InstanceStatuses"]) == 1


def test_list_when_there_are_a_thousand_then_under_a_second(rig):
    for _ in range(10):
        rig.run(instance_type="g5.xlarge", count=100, TagSpecifications=[TAG])
    rig.pass_s(1)
    filters = [{"Name": "tag:hostler:deployment", "Values": ["d"]}, {"Name": "instance-state-name", "Values": ["running"]}]

    def count():
        began = time.monotonic()
        status, _headers, body = rig.sandbox_answer("DescribeInstances", filters)
        return status, body.count(b"<instanceId>"), time.monotonic() - began

    count()
    took = sorted(count()[2] for _ in range(3))
    assert count()[:2] == (200, 1000)
    assert took[0] < 1.0
