import base64

import boto3
import pytest

from hostler.cloud.driver import MachineState, OfferingQuery
from hostler.cloud.errors import NodeNotFoundError
from hostler.cloud.tags import LEASE
from hostler.model.enums import CapacityType

from .conftest import REGION, order


def test_launch_when_ordered_then_machine_has_tags_token_and_address(driver_for):
    made = driver_for().launch(order())
    assert made.state in {MachineState.PENDING, MachineState.RUNNING}
    assert made.tags == dict(order().tags)
    assert (made.zone, made.instance_type, made.client_token) == ("us-east-1a", "g6.xlarge", order().client_token)
    assert made.address
    assert made.launched_at
    assert made.ended_at is None


def test_launch_when_ordered_then_the_account_shows_a_hardened_machine(driver_for, ec2):
    made = driver_for(root_volume_gib=64, instance_profile=None).launch(order(capacity_type=CapacityType.SPOT))
    shown = ec2.describe_instances(InstanceIds=[made.provider_id])["Reservations"][0]["Instances"][0]
    assert shown["MetadataOptions"]["HttpTokens"] == "required"
    assert shown["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    assert shown["InstanceLifecycle"] == "spot"
    disks = ec2.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": [made.provider_id]}])["Volumes"]
    assert [(disk["Size"], disk["Encrypted"]) for disk in disks] == [(64, True)]
    assert [mapping["Ebs"]["DeleteOnTermination"] for mapping in shown["BlockDeviceMappings"]] == [True]
    assert {tag["Key"]: tag["Value"] for tag in disks[0]["Tags"]} == dict(order().tags)
    behaviour = ec2.describe_instance_attribute(InstanceId=made.provider_id, Attribute="instanceInitiatedShutdownBehavior")
    assert behaviour["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"


def test_launch_when_user_data_given_then_the_machine_gets_those_bytes_once_encoded(driver_for, ec2):
    text = "#cloud-config\nruncmd: [echo é]\n"
    made = driver_for().launch(order(user_data=text))
    shown = ec2.describe_instance_attribute(InstanceId=made.provider_id, Attribute="userData")["UserData"]["Value"]
    assert base64.b64decode(shown).decode() == text


def test_launch_when_image_is_an_ssm_parameter_then_its_value_is_used(driver_for, image_id, ec2):
    boto3.client("ssm", region_name=REGION).put_parameter(Name="/team/image", Value=image_id, Type="String", Overwrite=True)
    made = driver_for(image="ssm:/team/image").launch(order())
    shown = ec2.describe_instances(InstanceIds=[made.provider_id])["Reservations"][0]["Instances"][0]
    assert shown["ImageId"] == image_id


def test_list_offerings_when_asked_then_zones_and_prices(driver_for):
    found = driver_for().list_offerings(
        OfferingQuery(accelerator="H100", accelerators_per_node=8, capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND))
    )
    assert found


def test_terminate_when_over_then_node_not_found(driver_for):
    driver = driver_for()
    made = driver.launch(order())
    driver.terminate(REGION, made.provider_id)
    with pytest.raises(NodeNotFoundError):
        driver.terminate(REGION, made.provider_id)
    assert driver.get_node(REGION, made.provider_id).state is MachineState.TERMINATED
    assert driver.get_node(REGION, made.provider_id).ended_at is not None


def test_list_nodes_when_tags_asked_then_only_those(driver_for):
    driver = driver_for()
    first = driver.launch(order(lease="a"))
    driver.launch(order(lease="b"))
    assert [found.provider_id for found in driver.list_nodes(REGION, {LEASE: "a"})] == [first.provider_id]
