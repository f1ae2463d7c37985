import gzip
import json
from dataclasses import replace
from pathlib import Path

import botocore
import pytest
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from tests.clouds.aws import IMAGE, REGION, order

from hostler.cloud.errors import CloudConfigError
from hostler.drivers.aws.orders import USER_DATA_LIMIT, Reservation, Site, client_token, run_request
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType

SITE = Site(image_id=IMAGE, root_device="/dev/sda1", subnet_id="subnet-1", group_ids=("sg-1",))
RESERVATION = Reservation(
    reservation_id="cr-1", zone="us-east-1a", instance_type="g6.xlarge", available_count=1, is_block=False
)


def settings(**changes) -> AwsSettings:
    return AwsSettings.model_validate({"regions": [REGION], "image": IMAGE, **changes})


def request_for(site: Site = SITE, *, capacity_type=CapacityType.ON_DEMAND, user_data="x", **changes):
    return run_request(order(capacity_type=capacity_type, user_data=user_data), site, settings(**changes))


@pytest.fixture(scope="module")
def shape():
    path = Path(botocore.__file__).parent / "data" / "ec2" / "2016-11-15" / "service-2.json.gz"
    return ServiceModel(json.loads(gzip.decompress(path.read_bytes()))).operation_model("RunInstances").input_shape


@pytest.mark.parametrize("capacity_type", list(CapacityType))
@pytest.mark.parametrize("is_block", [False, True])
def test_run_request_when_built_then_the_vendors_model_accepts_it(shape, capacity_type, is_block):
    site = replace(SITE, reservation=replace(RESERVATION, is_block=is_block))
    request = request_for(site, capacity_type=capacity_type, kms_key="alias/x", instance_profile="nodes")
    assert ParamValidator().validate(request, shape).generate_report() == ""


def test_run_request_when_built_twice_then_same_bytes():
    assert json.dumps(request_for()) == json.dumps(request_for())


def test_run_request_when_any_then_exactly_one_and_hardened():
    request = request_for()
    assert (request["MinCount"], request["MaxCount"]) == (1, 1)
    assert request["MetadataOptions"] == {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    assert request["InstanceInitiatedShutdownBehavior"] == "terminate"
    disk = request["BlockDeviceMappings"][0]
    assert disk["DeviceName"] == "/dev/sda1"
    assert disk["Ebs"]["Encrypted"] is True
    assert disk["Ebs"]["DeleteOnTermination"] is True
    assert "KmsKeyId" not in disk["Ebs"]


def test_run_request_when_key_and_profile_given_then_used():
    request = request_for(kms_key="alias/nodes", instance_profile="nodes")
    assert request["BlockDeviceMappings"][0]["Ebs"]["KmsKeyId"] == "alias/nodes"
    assert request["IamInstanceProfile"] == {"Name": "nodes"}
    arn = "arn:aws:iam::000000000000:instance-profile/nodes"
    assert request_for(instance_profile=arn)["IamInstanceProfile"] == {"Arn": arn}


def test_run_request_when_spot_then_one_time_and_its_request_is_tagged_too():
    request = request_for(capacity_type=CapacityType.SPOT)
    options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
    assert request["InstanceMarketOptions"] == {"MarketType": "spot", "SpotOptions": options}
    kinds = [item["ResourceType"] for item in request["TagSpecifications"]]
    assert kinds == ["instance", "volume", "network-interface", "spot-instances-request"]


def test_run_request_when_on_demand_then_no_market_and_three_tagged_kinds():
    request = request_for()
    assert "InstanceMarketOptions" not in request
    assert [item["ResourceType"] for item in request["TagSpecifications"]] == ["instance", "volume", "network-interface"]


def test_run_request_when_fleet_has_tags_then_the_orders_win():
    tags = request_for(tags={"hostler:lease": "stolen", "cost": "42"})["TagSpecifications"][0]["Tags"]
    found = {tag["Key"]: tag["Value"] for tag in tags}
    assert found == {**dict(order().tags), "cost": "42"}


def test_run_request_when_reserved_then_that_reservation_is_targeted():
    request = request_for(replace(SITE, reservation=RESERVATION), capacity_type=CapacityType.RESERVED)
    assert request["CapacityReservationSpecification"] == {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    assert "InstanceMarketOptions" not in request


def test_run_request_when_capacity_block_then_its_market_type():
    site = replace(SITE, reservation=replace(RESERVATION, is_block=True))
    assert request_for(site, capacity_type=CapacityType.RESERVED)["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


def test_run_request_when_reserved_without_reservation_then_refused():
    with pytest.raises(CloudConfigError, match=r"clouds\.aws\.reservations"):
        request_for(capacity_type=CapacityType.RESERVED)


def test_run_request_when_reached_publicly_then_a_public_address_is_asked_for():
    assert "AssociatePublicIpAddress" not in request_for()["NetworkInterfaces"][0]
    assert request_for(reach={"address": "public"})["NetworkInterfaces"][0]["AssociatePublicIpAddress"] is True


def test_run_request_when_no_group_is_named_then_the_vpcs_default():
    assert "Groups" not in request_for(replace(SITE, group_ids=()))["NetworkInterfaces"][0]


def test_run_request_when_user_data_is_too_long_then_refused_before_sending():
    assert request_for(user_data="x" * USER_DATA_LIMIT)["UserData"]
    with pytest.raises(CloudConfigError, match="16384"):
        request_for(user_data="é" * (USER_DATA_LIMIT // 2 + 1))


def test_client_token_when_deployments_share_an_account_then_theirs_differ():
    assert order().client_token == order(deployment="other").client_token
    assert client_token(order()) != client_token(order(deployment="other"))
    assert client_token(order()) == client_token(order())
    assert len(client_token(order())) == 40
