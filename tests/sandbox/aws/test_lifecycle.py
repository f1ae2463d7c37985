import re
import time
from datetime import UTC, datetime, timedelta

import botocore.exceptions
import pytest
from tests.sandbox.aws.test_launch import refused

from hostler_sandbox import Delays


def test_terminate_when_running_then_shutting_down_then_terminated_with_the_time(rig):
    one = rig.run_one()
    rig.pass_s(1)
    rig.sandbox.estate.delays = Delays(shutting_down_s=30, listed_s=60)
    before = rig.sandbox.clock.now()
    change = rig.ec2.terminate_instances(InstanceIds=[one])["TerminatingInstances"][0]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("running", "shutting-down")
    assert rig.state(one) == "shutting-down"
    rig.pass_s(31)
    shown = rig.show(one)
    assert shown["State"]["Name"] == "terminated"
    assert shown["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    found = re.fullmatch(r"User initiated \((\S+ \S+) GMT\)", shown["StateTransitionReason"])
    at = datetime.strptime(found.group(1), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    assert before - timedelta(seconds=1) <= at <= before + timedelta(seconds=5)
    assert "PrivateIpAddress" not in shown
    again = rig.ec2.terminate_instances(InstanceIds=[one])["TerminatingInstances"][0]
    assert again["CurrentState"]["Name"] == "terminated"
    rig.pass_s(61)
    with refused("InvalidInstanceID.NotFound"):
        rig.show(one)


def test_list_when_it_lags_then_a_new_instance_is_missing_everywhere_but_can_be_ended(rig):
    rig.sandbox.estate.delays = Delays(pending_s=0.05, list_lag_s=20)
    one = rig.run_one(ClientToken="lag", spot=True)
    with refused("InvalidInstanceID.NotFound"):
        rig.show(one)
    by_token = [{"Name": "client-token", "Values": ["lag"]}]
    assert rig.ec2.describe_instances(Filters=by_token)["Reservations"] == []
    assert rig.ec2.describe_spot_instance_requests()["SpotInstanceRequests"] == []
    rig.pass_s(21)
    assert rig.show(one)["InstanceId"] == one
    assert len(rig.ec2.describe_instances(Filters=by_token)["Reservations"]) == 1


def test_start_when_terminated_or_running_then_refused_or_nothing(rig):
    one = rig.run_one()
    rig.pass_s(1)
    rig.ec2.start_instances(InstanceIds=[one])
    rig.ec2.terminate_instances(InstanceIds=[one])
    rig.pass_s(1)
    with refused("IncorrectInstanceState"):
        rig.ec2.start_instances(InstanceIds=[one])


def test_stop_when_on_demand_then_stopped_resizable_and_startable_under_quota(rig):
    one = rig.run_one(instance_type="g5.xlarge")
    rig.pass_s(1)
    with refused("IncorrectInstanceState"):
        rig.ec2.modify_instance_attribute(InstanceId=one, InstanceType={"Value": "g5.2xlarge"})
    rig.ec2.stop_instances(InstanceIds=[one])
    rig.pass_s(1)
    assert rig.state(one) == "stopped"
    rig.post("quota", region="us-east-1", family="G", vcpus=0)
    with refused("VcpuLimitExceeded"):
        rig.ec2.start_instances(InstanceIds=[one])
    assert rig.state(one) == "stopped"
    rig.post("quota", region="us-east-1", family="G", vcpus=None)
    rig.ec2.modify_instance_attribute(InstanceId=one, InstanceType={"Value": "g5.2xlarge"})
    rig.ec2.start_instances(InstanceIds=[one])
    rig.pass_s(1)
    shown = rig.show(one)
    assert (shown["State"]["Name"], shown["InstanceType"]) == ("running", "g5.2xlarge")


def test_stop_when_one_time_spot_then_refused(rig):
    one = rig.run_one(spot=True)
    rig.pass_s(1)
    with refused("UnsupportedOperation"):
        rig.ec2.stop_instances(InstanceIds=[one])


@pytest.mark.parametrize(("behavior", "ends_as"), [("terminate", "terminated"), ("stop", "stopped")])
def test_power_off_when_the_guest_does_it_then_as_the_launch_said(rig, behavior, ends_as):
    one = rig.run_one(InstanceInitiatedShutdownBehavior=behavior)
    rig.pass_s(1)
    rig.sandbox.runtime.power_off(one)
    end = time.monotonic() + 5
    while rig.state(one) != ends_as and time.monotonic() < end:
        rig.sandbox.clock.advance(1)
    shown = rig.show(one)
    assert (shown["State"]["Name"], shown["StateReason"]["Code"]) == (ends_as, "Client.InstanceInitiatedShutdown")


def test_terminate_when_protected_then_refused_and_one_unknown_id_refuses_all(rig):
    kept = rig.run_one(DisableApiTermination=True)
    other = rig.run_one()
    with refused("OperationNotPermitted"):
        rig.ec2.terminate_instances(InstanceIds=[other, kept])
    with refused("InvalidInstanceID.NotFound"):
        rig.ec2.terminate_instances(InstanceIds=[other, "i-0123456789abcdef0"])
    rig.pass_s(1)
    assert rig.state(other) == "running"


def test_terminate_when_done_then_the_disk_and_the_card_are_gone(rig):
    tags = [
        {"ResourceType": kind, "Tags": [{"Key": "t", "Value": "1"}]} for kind in ("volume", "network-interface", "instance")
    ]
    disk = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 50, "Encrypted": True, "VolumeType": "gp3"}}]
    one = rig.run_one(BlockDeviceMappings=disk, TagSpecifications=tags)
    tagged = [{"Name": "tag:t", "Values": ["1"]}]
    volumes = rig.ec2.describe_volumes(Filters=tagged)["Volumes"]
    assert [volume["Size"] for volume in volumes] == [50]
    assert rig.ec2.describe_network_interfaces(Filters=tagged)["NetworkInterfaces"]
    assert rig.show(one)["BlockDeviceMappings"][0]["Ebs"]["VolumeId"] == volumes[0]["VolumeId"]
    rig.ec2.terminate_instances(InstanceIds=[one])
    rig.pass_s(1)
    end = time.monotonic() + 5
    while rig.ec2.describe_volumes(Filters=tagged)["Volumes"] and time.monotonic() < end:
        rig.sandbox.timers.run_due()
    assert rig.ec2.describe_volumes(Filters=tagged)["Volumes"] == []
    assert rig.ec2.describe_network_interfaces(Filters=tagged)["NetworkInterfaces"] == []


def test_launch_when_its_kms_key_is_disabled_then_taken_and_ended(rig):
    kms = rig.client("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    kms.disable_key(KeyId=key)
    disk = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8, "Encrypted": True, "KmsKeyId": key}}]
    one = rig.run_one(BlockDeviceMappings=disk)
    rig.pass_s(1)
    rig.pass_s(1)
    shown = rig.show(one)
    assert (shown["State"]["Name"], shown["StateReason"]["Code"]) == ("terminated", "Client.InternalError")


def test_tags_when_changed_then_shown_and_filtered(rig):
    one = rig.run_one()
    rig.pass_s(1)
    rig.ec2.create_tags(Resources=[one], Tags=[{"Key": "a", "Value": "b*c"}])
    found = rig.ec2.describe_instances(Filters=[{"Name": "tag:a", "Values": [r"b\*c"]}])
    assert found["Reservations"][0]["Instances"][0]["InstanceId"] == one
    assert rig.ec2.describe_instances(Filters=[{"Name": "tag:a", "Values": [r"b\*?d"]}])["Reservations"] == []
    rig.ec2.delete_tags(Resources=[one], Tags=[{"Key": "a"}])
    assert "Tags" not in rig.show(one)


def test_cost_when_ended_then_price_times_the_time_from_launch_to_end(rig):
    before = float(rig.control("cost")[1]["total_usd"])
    one = rig.run_one()
    rig.pass_s(3600)
    rig.ec2.terminate_instances(InstanceIds=[one])
    rig.pass_s(1)
    rig.pass_s(3000)
    reply = rig.control("cost")[1]
    assert reply["simulated"] is True
    assert 55.04 <= float(reply["machines"][one]) < 55.2
    assert float(reply["total_usd"]) - before == pytest.approx(float(reply["machines"][one]), abs=0.001)


def test_requests_when_what_the_model_does_not_know_then_refused(rig):
    rig.ec2.meta.events.register_first("before-sign.ec2.DescribeInstances", _add_nonsense)
    try:
        with refused("UnknownParameter"):
            rig.ec2.describe_instances()
    finally:
        rig.ec2.meta.events.unregister("before-sign.ec2.DescribeInstances", _add_nonsense)


def _add_nonsense(request, **_):
    request.data["Nonsense"] = "1"


def test_actions_when_the_sandbox_does_not_serve_them_then_loud(rig):
    with refused("UnsupportedOperation"):
        rig.ec2.request_spot_instances(LaunchSpecification={"ImageId": "ami-1", "InstanceType": "p5.48xlarge"})
    with refused("UnsupportedOperation"):
        rig.ec2.get_spot_placement_scores(TargetCapacity=1, InstanceTypes=["p5.48xlarge"])


def test_dry_run_when_asked_then_nothing_is_made(rig):
    with pytest.raises(botocore.exceptions.ClientError, match="DryRunOperation"):
        rig.run(DryRun=True)
    assert not rig.sandbox.estate.alive()
