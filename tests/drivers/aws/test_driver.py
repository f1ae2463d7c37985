import base64
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.clouds import aws
from tests.clouds.aws import REGION, order
from tests.clouds.front import Fault

from hostler.cloud.driver import CloudDriver, MachineState, OfferingQuery, SupportsForeignView
from hostler.cloud.errors import (
    AlreadyExistsError,
    AnswerLostError,
    CloudAuthError,
    CloudConfigError,
    CloudUnavailableError,
    InsufficientCapacityError,
    NodeNotFoundError,
    NodeNotOursError,
    QuotaExceededError,
    SpotUnavailableError,
    TeardownRefusedError,
)
from hostler.cloud.tags import DEPLOYMENT, INTENT
from hostler.drivers.aws.driver import AwsDriver, build
from hostler.drivers.aws.orders import client_token
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType
from hostler.wiring.sdk_sessions import SdkSessions


def shown(ec2, node):
    return ec2.describe_instances(InstanceIds=[node.provider_id])["Reservations"][0]["Instances"][0]


def test_build_when_settings_are_good_then_it_is_the_port_and_calls_nothing(front):
    settings = AwsSettings(regions=(REGION,), image=aws.IMAGE, call_timeout_s=20)
    driver: CloudDriver = build(deployment="d", settings=settings, sessions=SdkSessions())
    assert isinstance(driver, SupportsForeignView)
    assert (driver.name, driver.regions) == ("aws", (REGION,))
    assert driver.call_budget_s >= 2 * 20
    assert not front.counts


@pytest.mark.parametrize("key", ["kubernetes.io/cluster/x", "karpenter.sh/nodepool", "aws:anything"])
def test_build_when_extra_tags_claim_for_another_owner_then_refused(key):
    settings = AwsSettings(regions=(REGION,), image=aws.IMAGE, tags={key: "owned"})
    with pytest.raises(CloudConfigError, match=key):
        build(deployment="d", settings=settings, sessions=SdkSessions())


def test_launch_when_ordered_then_the_account_shows_a_hardened_machine(driver_for, ec2):
    made = driver_for(root_volume_gib=64).launch(order(capacity_type=CapacityType.SPOT))
    instance = shown(ec2, made)
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    assert instance["InstanceLifecycle"] == "spot"
    disks = ec2.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": [made.provider_id]}])["Volumes"]
    assert [(disk["Size"], disk["Encrypted"]) for disk in disks] == [(64, True)]
    assert [mapping["Ebs"]["DeleteOnTermination"] for mapping in instance["BlockDeviceMappings"]] == [True]
    assert {tag["Key"]: tag["Value"] for tag in disks[0]["Tags"]} == dict(order().tags)
    behaviour = ec2.describe_instance_attribute(InstanceId=made.provider_id, Attribute="instanceInitiatedShutdownBehavior")
    assert behaviour["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"


def test_launch_when_made_then_it_has_token_address_and_named_sub_resources(driver_for):
    driver = driver_for()
    made = driver.launch(order())
    assert made.client_token == client_token(order())
    assert made.address
    later = driver.get_node(REGION, made.provider_id)
    assert {kind for kind, _ in later.resources} == {"volume", "network-interface"}


def test_launch_when_user_data_given_then_the_machine_gets_those_bytes_encoded_once(driver_for, ec2):
    text = "#cloud-config\nruncmd: [echo é]\n"
    made = driver_for().launch(order(user_data=text))
    kept = ec2.describe_instance_attribute(InstanceId=made.provider_id, Attribute="userData")["UserData"]["Value"]
    assert base64.b64decode(kept).decode() == text


def test_launch_when_image_is_an_ssm_parameter_then_its_value_is_used(driver_for, image_id, ec2):
    aws.owner("ssm").put_parameter(Name="/team/image", Value=image_id, Type="String", Overwrite=True)
    assert shown(ec2, driver_for(image="ssm:/team/image").launch(order()))["ImageId"] == image_id


def test_launch_when_parameter_is_missing_then_config_error_and_nothing_is_sent(driver_for, front):
    with pytest.raises(CloudConfigError, match="ParameterNotFound"):
        driver_for(image="ssm:/nobody/wrote/this").launch(order())
    assert front.counts["RunInstances"] == 0


def test_launch_when_image_is_missing_then_config_error_and_nothing_is_sent(driver_for, front):
    with pytest.raises(CloudConfigError):
        driver_for(image="ami-00000000000000000").launch(order())
    assert front.counts["RunInstances"] == 0


def test_launch_when_network_is_selected_by_tag_then_that_subnet_and_group(driver_for, ec2):
    subnet = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": ["us-east-1b"]}])["Subnets"][0]
    group = ec2.create_security_group(GroupName=f"g{time.monotonic_ns()}", Description="d", VpcId=subnet["VpcId"])["GroupId"]
    ec2.create_tags(Resources=[subnet["SubnetId"], group], Tags=[{"Key": "use", "Value": "nodes"}])
    driver = driver_for(subnets={"tags": {"use": "nodes"}}, security_groups={"tags": {"use": "nodes"}})
    instance = shown(ec2, driver.launch(order(zone="us-east-1b")))
    assert instance["SubnetId"] == subnet["SubnetId"]
    assert [item["GroupId"] for item in instance["NetworkInterfaces"][0]["Groups"]] == [group]
    with pytest.raises(CloudConfigError, match="no subnet in zone us-east-1a"):
        driver.launch(order(zone="us-east-1a"))
    ec2.delete_tags(Resources=[subnet["SubnetId"], group], Tags=[{"Key": "use"}])


def test_launch_when_many_are_launched_then_the_account_is_looked_up_once(driver_for, front):
    driver = driver_for()
    for slot in range(3):
        driver.launch(order(slot=slot))
    assert front.counts["RunInstances"] == 3
    assert front.counts["DescribeImages"] <= 2  # the test's own look for its image is one
    assert front.counts["DescribeSubnets"] == 1


def test_launch_when_look_ups_take_too_long_then_nothing_is_sent(image_id, front):
    ticks = iter(range(0, 100_000, 20))
    settings = AwsSettings(regions=(REGION,), image=image_id, call_timeout_s=30)
    driver = AwsDriver(deployment=aws.DEPLOYMENT, settings=settings, sessions=SdkSessions(), clock=lambda: float(next(ticks)))
    with pytest.raises(CloudUnavailableError, match="call budget"):
        driver.launch(order())
    assert front.counts["RunInstances"] == 0


def test_launch_when_tags_are_another_deployments_then_refused(driver_for):
    with pytest.raises(CloudConfigError, match="test-deployment"):
        driver_for().launch(order(deployment="other"))


CAPACITY = Fault(
    kind="refuse",
    code="InsufficientInstanceCapacity",
    status=500,
    text="We currently do not have sufficient g6.xlarge capacity in the Availability Zone you requested (us-east-1a). You can "
    "currently get g6.xlarge capacity by not specifying an Availability Zone or choosing us-east-1b, us-east-1d.",
)


def test_launch_when_http_500_says_no_capacity_then_capacity_with_hints_and_one_call(driver_for, front):
    front.order("RunInstances", CAPACITY)
    with pytest.raises(InsufficientCapacityError) as error:
        driver_for().launch(order())
    assert error.value.suggested_zones == ("us-east-1b", "us-east-1d")
    assert error.value.__cause__ is not None
    assert front.counts["RunInstances"] == 1


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("SpotMaxPriceTooLow", 400, SpotUnavailableError),  # B45
        ("VcpuLimitExceeded", 400, QuotaExceededError),
        ("IdempotentParameterMismatch", 400, AlreadyExistsError),
        ("InternalError", 500, AnswerLostError),
        ("BrandNewCode", 400, InsufficientCapacityError),  # B44
        ("UnauthorizedOperation", 403, CloudAuthError),
    ],
)
def test_launch_when_refused_on_the_wire_then_drawn_and_no_node_is_returned(driver_for, front, code, status, kind):
    front.order("RunInstances", Fault(kind="refuse", code=code, text="words", status=status))
    with pytest.raises(kind, match=code):
        driver_for().launch(order())
    assert front.counts["RunInstances"] == 1


@pytest.mark.parametrize("kind", ["lose", "garble"])
def test_launch_when_answer_is_cut_or_garbled_then_lost_and_the_machine_is_found_by_tag(driver_for, front, kind):
    driver = driver_for(deployment=f"cut-{kind}")
    wanted = order(deployment=f"cut-{kind}")
    front.order("RunInstances", Fault(kind=kind))
    with pytest.raises(AnswerLostError):
        driver.launch(wanted)
    assert front.counts["RunInstances"] == 1
    assert len(driver.list_nodes(REGION, {INTENT: wanted.name})) == 1


def test_launch_when_nobody_listens_then_unavailable_for_nothing_was_sent(monkeypatch, image_id, driver_for):
    driver = driver_for()
    driver.launch(order())
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    dead = aws.driver(image_id)
    with pytest.raises(CloudUnavailableError):
        dead.launch(order(slot=1))


def test_launch_when_there_are_no_credentials_then_auth(monkeypatch, front):
    settings = AwsSettings(regions=(REGION,), image=aws.IMAGE)
    driver = build(deployment=aws.DEPLOYMENT, settings=settings, sessions=SdkSessions())
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CloudAuthError, match="no AWS credentials"):
        driver.launch(order())


def test_calls_when_sixteen_threads_launch_at_once_then_sixteen_machines(driver_for):
    driver = driver_for(deployment="threads")
    with ThreadPoolExecutor(16) as pool:
        orders = [order(deployment="threads", slot=slot) for slot in range(16)]
        made = [machine.provider_id for machine in pool.map(driver.launch, orders)]
    assert len(set(made)) == 16
    assert {node.provider_id for node in driver.list_nodes(REGION)} == set(made)


def test_terminate_when_another_owner_claims_our_machine_then_refused_and_it_lives(driver_for, ec2):
    driver = driver_for(deployment="claimed")
    made = driver.launch(order(deployment="claimed"))
    ec2.create_tags(Resources=[made.provider_id], Tags=[{"Key": "karpenter.sh/nodepool", "Value": "gpu"}])
    with pytest.raises(TeardownRefusedError, match="another owner"):
        driver.terminate(REGION, made.provider_id)
    assert driver.get_node(REGION, made.provider_id).state is MachineState.RUNNING
    assert made.provider_id in {node.provider_id for node in driver.list_foreign(REGION)}


def test_terminate_when_protected_then_refused_and_it_lives(driver_for, ec2):
    driver = driver_for()
    made = driver.launch(order())
    ec2.modify_instance_attribute(InstanceId=made.provider_id, DisableApiTermination={"Value": True})
    with pytest.raises(TeardownRefusedError, match="OperationNotPermitted"):
        driver.terminate(REGION, made.provider_id)
    ec2.modify_instance_attribute(InstanceId=made.provider_id, DisableApiTermination={"Value": False})
    driver.terminate(REGION, made.provider_id)


def test_terminate_when_our_tag_was_taken_off_then_it_is_told_apart_from_a_machine_that_is_gone(driver_for, ec2):
    driver = driver_for()
    made = driver.launch(order())
    ec2.delete_tags(Resources=[made.provider_id], Tags=[{"Key": DEPLOYMENT}])
    for ask in (driver.get_node, driver.terminate):
        with pytest.raises(NodeNotOursError):
            ask(REGION, made.provider_id)
    ec2.terminate_instances(InstanceIds=[made.provider_id])
    with pytest.raises(NodeNotFoundError) as gone:
        driver.get_node(REGION, made.provider_id)
    assert not isinstance(gone.value, NodeNotOursError)


def test_terminate_when_describe_does_not_know_it_yet_then_ec2_is_asked_all_the_same(driver_for, front):
    driver = driver_for()
    made = driver.launch(order())
    front.order("DescribeInstances", Fault(kind="refuse", code="InvalidInstanceID.NotFound", text="does not exist"))
    driver.terminate(REGION, made.provider_id)
    with pytest.raises(NodeNotFoundError):
        driver.terminate(REGION, made.provider_id)


def test_terminate_when_only_describing_is_denied_then_it_really_ends(driver_for, front):
    """B01, on the wire."""
    driver = driver_for()
    made = driver.launch(order())
    front.always["DescribeInstances"] = Fault(kind="refuse", code="UnauthorizedOperation", status=403, text="no")
    driver.terminate(REGION, made.provider_id)
    front.clear()
    assert driver.get_node(REGION, made.provider_id).state is MachineState.TERMINATED


def test_list_offerings_when_types_are_sold_in_some_zones_then_the_rest_say_why_not(driver_for):
    driver = driver_for()
    query = OfferingQuery(accelerator="H200", accelerators_per_node=8, capacity_types=(CapacityType.ON_DEMAND,))
    found = {offering.zone: offering for offering in driver.list_offerings(query) if offering.instance_type == "p5en.48xlarge"}
    assert len(found) == 6
    sold = [offering for offering in found.values() if offering.is_available]
    assert sold
    assert {str(offering.price_usd_per_hour) for offering in sold} == {"63.296"}
    reasons = [offering.unavailable_reason for offering in found.values() if not offering.is_available]
    assert reasons
    assert all("EC2 does not offer p5en.48xlarge in us-east-1" in reason for reason in reasons)


def test_list_offerings_when_capacity_type_is_not_enabled_then_marked(driver_for):
    driver = driver_for(capacity_types=["on-demand"])
    query = OfferingQuery(accelerator="L4", accelerators_per_node=1, capacity_types=(CapacityType.SPOT,))
    found = driver.list_offerings(query)
    assert found
    assert {offering.unavailable_reason for offering in found} == {"clouds.aws.capacity_types has no spot"}


def test_list_offerings_when_zone_has_no_subnet_then_marked(driver_for):
    driver = driver_for(subnets={"tags": {"no": "subnet"}})
    query = OfferingQuery(accelerator="L4", accelerators_per_node=1, capacity_types=(CapacityType.ON_DEMAND,))
    reasons = {offering.unavailable_reason for offering in driver.list_offerings(query)}
    assert "clouds.aws.subnets has none in us-east-1a" in reasons


def test_list_offerings_when_region_is_not_configured_then_nothing_of_it(driver_for):
    query = OfferingQuery(
        accelerator="L4", accelerators_per_node=1, capacity_types=(CapacityType.ON_DEMAND,), regions=("eu-west-1",)
    )
    assert driver_for().list_offerings(query) == ()


def test_list_interruptions_when_events_may_not_be_seen_then_a_warning_and_the_rest(driver_for, front, caplog):
    driver = driver_for(deployment="noevents")
    driver.launch(order(deployment="noevents"))
    front.always["DescribeInstanceStatus"] = Fault(kind="refuse", code="UnauthorizedOperation", status=403, text="no")
    with caplog.at_level("WARNING"):
        assert driver.list_interruptions(REGION) == ()
    assert "scheduled events in us-east-1 cannot be seen" in caplog.text
    assert front.counts["DescribeSpotInstanceRequests"] == 1
