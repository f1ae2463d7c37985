"""The sandbox's EC2 through the real boto3: what it adds to moto, and what it refuses as EC2 does."""

import time
from decimal import Decimal

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from tests.sandbox.aws.conftest import client_of

IMAGE_PARAMETER = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
TAGS = [{"ResourceType": "instance", "Tags": [{"Key": "hostler:deployment", "Value": "acme"}, {"Key": "Name", "Value": "n"}]}]


@pytest.fixture
def launch(sandbox, ec2):
    image = next(key[1] for key, kind in sandbox.account.images.items() if key[0] == "us-east-1" and kind == "bare")

    def run(zone="us-east-1a", instance_type="g4dn.xlarge", **changes):
        order = {
            "ImageId": image,
            "MinCount": 1,
            "MaxCount": 1,
            "InstanceType": instance_type,
            "Placement": {"AvailabilityZone": zone},
            "TagSpecifications": TAGS,
        }
        return ec2.run_instances(**(order | changes))["Instances"][0]

    return run


def code_of(call, *arguments, **named):
    with pytest.raises(ClientError) as caught:
        call(*arguments, **named)
    answer = caught.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def state_of(ec2, machine_id):
    return ec2.describe_instances(InstanceIds=[machine_id])["Reservations"][0]["Instances"][0]["State"]["Name"]


def wait_for(ec2, machine_id, state):
    end = time.monotonic() + 10
    while state_of(ec2, machine_id) != state:
        assert time.monotonic() < end, f"{machine_id} did not become {state}"
        time.sleep(0.02)


def test_launch_when_new_then_pending_before_running_and_reached_at_a_loopback_address(ec2, launch):
    made = launch()
    assert made["State"]["Name"] == "pending"
    assert made["PrivateIpAddress"].startswith("127.1.")
    wait_for(ec2, made["InstanceId"], "running")


def test_token_when_repeated_then_the_same_machine(launch):
    assert launch(ClientToken="t")["InstanceId"] == launch(ClientToken="t")["InstanceId"]


def test_token_when_other_parameters_then_refused(launch):
    launch(ClientToken="t-shape")
    assert code_of(launch, ClientToken="t-shape", EbsOptimized=True) == ("IdempotentParameterMismatch", 400)


def test_token_when_in_another_zone_then_another_machine(launch):
    assert launch(ClientToken="t-zone")["InstanceId"] != launch(zone="us-east-1b", ClientToken="t-zone")["InstanceId"]


def test_token_when_its_machine_is_dead_then_refused(ec2, launch):
    made = launch(ClientToken="t-dead")
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    assert code_of(launch, ClientToken="t-dead") == ("IdempotentInstanceTerminated", 400)


def test_stock_when_a_pool_is_empty_then_http_500_that_names_other_zones(sandbox, launch):
    sandbox.cloud.stock.pools["us-east-1a", "g4dn.xlarge", "on-demand"] = 0
    assert code_of(launch) == ("InsufficientInstanceCapacity", 500)
    with pytest.raises(ClientError, match=r"choosing us-east-1b, us-east-1c, us-east-1d"):
        launch()
    launch(zone="us-east-1b")


def test_stock_when_a_machine_ends_then_its_place_can_be_had_again(sandbox, ec2, launch):
    sandbox.cloud.stock.pools["us-east-1a", "g4dn.xlarge", "on-demand"] = 1
    made = launch()
    assert code_of(launch)[0] == "InsufficientInstanceCapacity"
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    launch()


def test_quota_when_vcpus_run_out_then_on_demand_and_spot_say_so_each_in_its_words(sandbox, launch):
    sandbox.cloud.stock.quotas["us-east-1", "G", False] = 4
    sandbox.cloud.stock.quotas["us-east-1", "G", True] = 3
    launch()
    assert code_of(launch) == ("VcpuLimitExceeded", 400)
    assert code_of(launch, InstanceMarketOptions={"MarketType": "spot"}) == ("MaxSpotInstanceCountExceeded", 400)


def test_spot_when_the_bid_is_below_the_price_then_refused(launch):
    bid = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.01"}}
    assert code_of(launch, InstanceMarketOptions=bid) == ("SpotMaxPriceTooLow", 400)


def test_spot_when_launched_then_it_has_a_request_that_tells_its_fate(sandbox, ec2, launch):
    made = launch(InstanceMarketOptions={"MarketType": "spot"})
    machine = sandbox.cloud.get(made["InstanceId"], "us-east-1")
    sandbox.cloud.reclaim(machine)
    request = ec2.describe_spot_instance_requests(SpotInstanceRequestIds=[made["SpotInstanceRequestId"]])
    assert request["SpotInstanceRequests"][0]["Status"]["Code"] == "instance-terminated-no-capacity"
    shown = ec2.describe_instances(InstanceIds=[made["InstanceId"]])["Reservations"][0]["Instances"][0]
    assert shown["StateReason"]["Code"] == "Server.SpotInstanceTermination"


def test_spot_prices_when_asked_then_real_figures_of_now(ec2, sandbox):
    sandbox.cloud.stock.prices["us-east-1b", "p5.48xlarge", "spot"] = Decimal("17.5")
    rows = ec2.describe_spot_price_history(InstanceTypes=["p5.48xlarge"], AvailabilityZone="us-east-1b")["SpotPriceHistory"]
    assert [row["SpotPrice"] for row in rows] == ["17.500000"]
    assert abs(rows[0]["Timestamp"].timestamp() - time.time()) < 60


def test_termination_when_asked_then_shutting_down_then_terminated_with_its_time(ec2, launch):
    made = launch()
    change = ec2.terminate_instances(InstanceIds=[made["InstanceId"]])["TerminatingInstances"][0]
    assert change["CurrentState"]["Name"] == "shutting-down"
    wait_for(ec2, made["InstanceId"], "terminated")
    shown = ec2.describe_instances(InstanceIds=[made["InstanceId"]])["Reservations"][0]["Instances"][0]
    assert shown["StateTransitionReason"].startswith("User initiated (20")
    assert "PrivateIpAddress" not in shown


def test_termination_when_protected_then_refused(ec2, launch):
    made = launch(DisableApiTermination=True)
    assert code_of(ec2.terminate_instances, InstanceIds=[made["InstanceId"]]) == ("OperationNotPermitted", 400)


def test_list_when_lagging_then_a_new_machine_is_not_there_yet(sandbox, ec2, launch):
    made = launch()
    sandbox.cloud.get(made["InstanceId"], "us-east-1").visible_at = time.time() + 60
    assert code_of(ec2.describe_instances, InstanceIds=[made["InstanceId"]]) == ("InvalidInstanceID.NotFound", 400)
    filters = [{"Name": "instance-id", "Values": [made["InstanceId"]]}]
    assert ec2.describe_instances(Filters=filters)["Reservations"] == []


def test_list_when_filtered_by_tag_token_and_lifecycle_then_only_those(ec2, launch):
    spot = launch(InstanceMarketOptions={"MarketType": "spot"}, ClientToken="t-filter")
    launch()
    filters = [
        {"Name": "tag:hostler:deployment", "Values": ["ac*"]},
        {"Name": "instance-lifecycle", "Values": ["spot"]},
        {"Name": "client-token", "Values": ["t-filter"]},
    ]
    found = ec2.describe_instances(Filters=filters)["Reservations"]
    assert [item["Instances"][0]["InstanceId"] for item in found] == [spot["InstanceId"]]


def test_list_when_a_filter_is_unknown_then_refused(ec2):
    filters = [{"Name": "colour", "Values": ["red"]}]
    assert code_of(ec2.describe_instances, Filters=filters) == ("InvalidParameterValue", 400)


def test_list_when_paged_then_every_machine_once(ec2, launch):
    made = {launch()["InstanceId"] for _ in range(7)}
    filters = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    pages = list(ec2.get_paginator("describe_instances").paginate(Filters=filters, PaginationConfig={"PageSize": 5}))
    assert [len(page["Reservations"]) for page in pages] == [5, 2]
    assert {item["Instances"][0]["InstanceId"] for page in pages for item in page["Reservations"]} == made


def test_stop_and_start_when_legal_then_done_and_otherwise_refused(ec2, launch):
    made = launch()["InstanceId"]
    wait_for(ec2, made, "running")
    assert code_of(ec2.start_instances, InstanceIds=[made]) == ("IncorrectInstanceState", 400)
    resize = {"InstanceId": made, "InstanceType": {"Value": "g5.xlarge"}}
    assert code_of(ec2.modify_instance_attribute, **resize) == ("IncorrectInstanceState", 400)
    ec2.terminate_instances(InstanceIds=[made])
    wait_for(ec2, made, "terminated")
    assert code_of(ec2.start_instances, InstanceIds=[made]) == ("IncorrectInstanceState", 400)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound"),
        ({"InstanceType": "p99.huge"}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZone": "us-east-1z"}}, "InvalidParameterValue"),
        ({"instance_type": "p6-b200.48xlarge"}, "Unsupported"),
        ({"SubnetId": "subnet-0"}, "InvalidSubnetID.NotFound"),
        ({"SecurityGroupIds": ["sg-0"]}, "InvalidGroup.NotFound"),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "InvalidParameterValue"),
        ({"UserData": "x" * 16385}, "InvalidParameterValue"),
    ],
)
def test_launch_when_a_part_does_not_exist_then_refused_before_any_effect(sandbox, launch, changes, code):
    before = len(sandbox.cloud.all())
    assert code_of(launch, **changes)[0] == code
    assert len(sandbox.cloud.all()) == before


def test_faults_when_ordered_then_each_happens_once_and_the_next_call_works(sandbox, launch):
    sandbox.cloud.faults.order({"kind": "throttle", "action": "RunInstances"})
    assert code_of(launch) == ("RequestLimitExceeded", 503)
    sandbox.cloud.faults.order({"kind": "unauthorized", "action": "RunInstances"})
    assert code_of(launch) == ("UnauthorizedOperation", 403)
    launch()


@pytest.mark.parametrize("kind", ["answer_lost", "late_create"])
def test_answer_when_lost_then_the_machine_is_there_all_the_same(sandbox, launch, kind):
    before = len(sandbox.cloud.all())
    sandbox.cloud.faults.order({"kind": kind, "action": "RunInstances"})
    with pytest.raises((ConnectionClosedError, ClientError)):
        launch()
    assert len(sandbox.cloud.all()) == before + 1


def test_interruption_when_noticed_then_scheduled_then_taken(sandbox, ec2, launch):
    made = launch(InstanceMarketOptions={"MarketType": "spot"})["InstanceId"]
    wait_for(ec2, made, "running")
    machine = sandbox.cloud.get(made, "us-east-1")
    end = time.monotonic() + 10
    while made not in sandbox.nodes.node_ids():
        assert time.monotonic() < end
        time.sleep(0.02)
    sandbox.cloud.interrupt(machine, 0.3)
    assert ec2.describe_instance_status(InstanceIds=[made])["InstanceStatuses"][0]["Events"]
    wait_for(ec2, made, "terminated")


def test_reservation_when_used_up_then_refused(sandbox, ec2, launch):
    made = ec2.create_capacity_reservation(
        InstanceType="p5.48xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1c", InstanceCount=1
    )["CapacityReservation"]["CapacityReservationId"]
    target = {"CapacityReservationTarget": {"CapacityReservationId": made}}
    order = {"instance_type": "p5.48xlarge", "zone": "us-east-1c", "CapacityReservationSpecification": target}
    launch(**order)
    assert code_of(launch, **order) == ("ReservationCapacityExceeded", 400)
    assert ec2.describe_capacity_reservations()["CapacityReservations"][0]["AvailableInstanceCount"] == 0


def test_images_when_named_by_public_parameter_then_launchable(sandbox, launch):
    ssm = client_of(sandbox, "ssm")
    launch(ImageId=ssm.get_parameter(Name=IMAGE_PARAMETER)["Parameter"]["Value"])
    ssm.close()


def test_cost_when_a_machine_ended_then_it_stops_growing(sandbox, ec2, launch):
    made = launch(instance_type="p5.48xlarge")["InstanceId"]
    machine = sandbox.cloud.get(made, "us-east-1")
    machine.launched_at -= 3600
    ec2.terminate_instances(InstanceIds=[made])
    assert machine.cost_usd(time.time() + 9999) == machine.cost_usd(time.time())
    assert Decimal("55.04") <= machine.cost_usd(time.time()) < Decimal("55.20")


def test_journal_when_calls_were_made_then_each_is_there_with_token_and_outcome(sandbox, launch):
    after = len(sandbox.journal.after())
    launch(ClientToken="t-journal")
    wire = [entry for entry in sandbox.journal.after(after) if entry["kind"] == "wire"]
    assert [(entry["action"], entry["token"], entry["status"]) for entry in wire] == [("RunInstances", "t-journal", 200)]
    assert "Boto3" in wire[0]["user_agent"]
