from concurrent.futures import ThreadPoolExecutor

import botocore.exceptions
import pytest


def refused(code):
    return pytest.raises(botocore.exceptions.ClientError, match=rf"\({code}\)")


def test_run_instances_when_there_is_stock_then_pending_then_running(rig):
    made = rig.run(TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "n"}]}])
    one = made["Instances"][0]
    assert one["State"]["Name"] == "pending"
    assert one["PrivateIpAddress"].startswith("127.1.")
    rig.pass_s(1)
    shown = rig.show(one["InstanceId"])
    assert shown["State"] == {"Code": 16, "Name": "running"}
    assert shown["PrivateIpAddress"] == one["PrivateIpAddress"] == shown["NetworkInterfaces"][0]["PrivateIpAddress"]
    assert shown["Tags"] == [{"Key": "Name", "Value": "n"}]


def test_run_instances_when_the_pool_is_empty_then_http_500_with_amazons_words(rig):
    rig.post("stock", zone="us-east-1a", instance_type="p5.48xlarge", capacity_type="on-demand", count=0)
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        rig.run()
    answer = caught.value.response
    assert answer["Error"]["Code"] == "InsufficientInstanceCapacity"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert "or choosing us-east-1b, us-east-1c" in answer["Error"]["Message"]
    assert rig.run("us-east-1b")["Instances"]


def test_run_instances_when_the_pool_has_two_then_the_third_is_refused_and_the_end_of_one_frees_it(rig):
    rig.post("stock", zone="us-east-1a", instance_type="p5.48xlarge", capacity_type="spot", count=2)
    first = rig.run_one(spot=True)
    rig.run_one(spot=True)
    with refused("InsufficientInstanceCapacity"):
        rig.run(spot=True)
    rig.ec2.terminate_instances(InstanceIds=[first])
    rig.pass_s(1)
    assert rig.run_one(spot=True)


def test_run_instances_when_a_zone_does_not_offer_the_type_then_unsupported(rig):
    with refused("Unsupported"):
        rig.run("us-east-1b", "p5en.48xlarge")


def test_run_instances_when_over_quota_then_vcpu_limit_exceeded_and_spot_has_its_own(rig):
    rig.post("quota", region="us-east-1", instance_type="p5.48xlarge", vcpus=192)
    rig.post("quota", region="us-east-1", family="P", capacity_type="spot", vcpus=100)
    rig.run()
    with pytest.raises(botocore.exceptions.ClientError, match="current vCPU limit of 192 allows") as caught:
        rig.run("us-east-1b")
    assert caught.value.response["Error"]["Code"] == "VcpuLimitExceeded"
    with refused("MaxSpotInstanceCountExceeded"):
        rig.run(spot=True)


def test_run_instances_when_the_spot_price_is_higher_then_spot_max_price_too_low(rig):
    options = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.001"}}
    with refused("SpotMaxPriceTooLow"):
        rig.run(InstanceMarketOptions=options)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"ImageId": "ami-0123456789abcdef0"}, "InvalidAMIID.NotFound"),
        ({"InstanceType": "nosuch.type"}, "InvalidParameterValue"),
        ({"KeyName": "nosuch"}, "InvalidKeyPair.NotFound"),
        ({"SubnetId": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "InvalidGroup.NotFound"),
        ({"IamInstanceProfile": {"Name": "nosuch"}}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZone": "eu-west-1a"}}, "InvalidParameterValue"),
        ({"Placement": {"GroupName": "nosuch"}}, "InvalidPlacementGroup.Unknown"),
        ({"UserData": "x" * 20000}, "InvalidParameterValue"),
    ],
)
def test_run_instances_when_what_it_names_does_not_exist_then_refused(rig, change, code):
    request = {
        "ImageId": rig.fixtures["images"]["us-east-1/gpu"],
        "InstanceType": "p5.48xlarge",
        "MinCount": 1,
        "MaxCount": 1,
        **change,
    }
    with refused(code):
        rig.ec2.run_instances(**request)
    assert rig.control("machines")[1]["machines"] == [] or not rig.sandbox.estate.alive()


def test_token_when_used_again_then_the_same_instance(rig):
    first = rig.run_one(ClientToken="t-1")
    assert rig.run_one(ClientToken="t-1") == first
    assert len(rig.sandbox.estate.alive()) == 1


def test_token_when_other_parameters_then_mismatch_but_another_zone_is_another_token(rig):
    first = rig.run_one(ClientToken="t-2")
    with refused("IdempotentParameterMismatch"):
        rig.run(instance_type="p4d.24xlarge", ClientToken="t-2")
    assert rig.run_one("us-east-1b", ClientToken="t-2") != first


def test_token_when_its_instance_is_dead_then_refused(rig):
    first = rig.run_one(ClientToken="t-3")
    rig.ec2.terminate_instances(InstanceIds=[first])
    rig.pass_s(1)
    with refused("IdempotentInstanceTerminated"):
        rig.run(ClientToken="t-3")


def test_token_when_the_launch_was_refused_then_it_is_free(rig):
    rig.post("stock", zone="us-east-1a", count=0)
    with refused("InsufficientInstanceCapacity"):
        rig.run(ClientToken="t-4")
    rig.post("stock", zone="us-east-1a", count=None)
    assert rig.run_one(ClientToken="t-4")


def test_launches_when_many_at_once_then_no_pool_is_oversold_and_one_token_makes_one_machine(rig):
    rig.post("stock", zone="us-east-1a", instance_type="g5.xlarge", count=3)
    ec2 = rig.ec2

    def launch(number):
        token = f"race-{number % 8}"
        try:
            return rig.run_one(instance_type="g5.xlarge", ClientToken=token)
        except ec2.exceptions.ClientError as error:
            return error.response["Error"]["Code"]

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(launch, range(32)))
    made = {one for one in found if one.startswith("i-")}
    assert len(made) == 3
    assert {one for one in found if not one.startswith("i-")} == {"InsufficientInstanceCapacity"}
    assert {machine.machine_id for machine in rig.sandbox.estate.alive()} == made
