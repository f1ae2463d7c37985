"""The doctor on the sandbox: what is well, what is not, what could not be asked, and that it changes nothing."""

import ipaddress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.clouds import aws
from tests.drivers.aws import sandbox_account

from hostler.cloud.doctor import CheckStatus
from hostler.drivers.aws.doctor.account import clock, identity_arn
from hostler.drivers.aws.doctor.doors import Origin, judge_inbound, judge_outbound
from hostler.drivers.aws.doctor.places import judge_image
from hostler_sandbox.state.faults import Fault

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
OK, WARN, FAIL, UNKNOWN = CheckStatus.OK, CheckStatus.WARN, CheckStatus.FAIL, CheckStatus.UNKNOWN


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    with sandbox_account.account(tmp_path_factory.mktemp("account")) as made:
        yield made


@pytest.fixture
def rig(sandbox, monkeypatch):
    aws.use_endpoint(monkeypatch, sandbox.aws_endpoint)
    monkeypatch.setattr("hostler.drivers.aws.doctor.doors.local_address", lambda _cidr: None)
    yield sandbox
    sandbox.faults.clear()
    sandbox.estate.quotas.clear()


def found(rig, *, asked=None, **changes):
    checks = sandbox_account.driver_of(rig, **changes).examine(sandbox_account.examination(**(asked or {})))
    return {check.name: check for check in checks}


def deny(rig, service, action):
    rig.faults.add(Fault(kind="unauthorized", service=service, action=action, count=None))


def test_doctor_when_all_is_well_then_only_ssh_is_named_and_no_secret_is_said(rig):
    checks = found(rig)
    assert {name for name, check in checks.items() if check.status is not OK} == {"ssh us-east-1"}
    assert checks["ssh us-east-1"].status is FAIL
    assert checks["permission ec2:RunInstances spot us-east-1"].text == "allowed, by a dry run"
    assert all(bool(check.fix) is (check.status is not OK) for check in checks.values())
    assert "testing" not in str(checks)


@pytest.mark.parametrize(("asks", "writes"), [(True, {"RunInstances"}), (False, set())])
def test_doctor_when_it_looks_then_it_makes_no_call_that_changes_anything(rig, asks, writes):
    began = sandbox_account.last(rig)
    found(rig, asked={"is_enforcing": asks, "asks_writes": asks})
    calls = sandbox_account.wire(rig, began)
    others = [item for item in calls if not item[1].startswith(("Describe", "Get", "Simulate"))]
    assert {action for _, action, _ in others} == writes
    assert {error for _, _, error in others} <= {"DryRunOperation"}
    assert not rig.estate.machines


def test_doctor_when_a_machine_of_ours_lives_then_ending_is_asked_by_a_dry_run_and_it_lives_on(rig):
    driver = sandbox_account.driver_of(rig)
    made = driver.launch(aws.order(deployment="acme", lease="doctor1"))
    checks = found(rig)
    assert checks["permission ec2:TerminateInstances us-east-1"].text == "allowed, by a dry run"
    assert driver.get_node(aws.REGION, made.provider_id).state != "terminated"
    driver.terminate(aws.REGION, made.provider_id)


@pytest.mark.parametrize(
    ("service", "action", "name", "status"),
    [
        ("ec2", "RunInstances", "permission ec2:RunInstances spot us-east-1", FAIL),
        ("ec2", "TerminateInstances", "permission ec2:TerminateInstances us-east-1", FAIL),
        ("ec2", "DescribeInstanceStatus", "permission ec2:DescribeInstanceStatus us-east-1", FAIL),
        ("ec2", "DescribeImages", "image us-east-1", UNKNOWN),
        ("ec2", "DescribeSubnets", "subnets us-east-1", UNKNOWN),
        ("ec2", "DescribeSecurityGroups", "security groups us-east-1", UNKNOWN),
        ("iam", "GetInstanceProfile", "instance profile", UNKNOWN),
        ("kms", "DescribeKey", "disk key us-east-1", UNKNOWN),
        ("servicequotas", "GetServiceQuota", "quota us-east-1 L-417A185B", UNKNOWN),
        ("ssm", "GetParameter", "image us-east-1", UNKNOWN),
        ("sts", "GetCallerIdentity", "credentials", FAIL),
        ("sts", "GetCallerIdentity", "image us-east-1", UNKNOWN),
    ],
)
def test_doctor_when_a_right_is_missing_then_what_hangs_on_it_is_not_called_well(rig, service, action, name, status):
    deny(rig, service, action)
    check = found(rig)[name]
    assert check.status is status
    assert check.fix


def test_doctor_when_iam_may_not_be_asked_then_ending_is_unknown(rig):
    deny(rig, "iam", "SimulatePrincipalPolicy")
    assert found(rig)["permission ec2:TerminateInstances us-east-1"].status is UNKNOWN


def test_doctor_when_observing_without_rights_to_write_then_it_warns_only(rig):
    deny(rig, "ec2", "RunInstances")
    check = found(rig, asked={"is_enforcing": False, "asks_writes": False})["permission ec2:RunInstances us-east-1"]
    assert (check.status, check.text) == (WARN, "implicitDeny, by IAM's simulation; mode observe needs it not")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"image": "ami-00000000000000000"}, "image us-east-1"),
        ({"image": "ssm:/no/such/parameter"}, "image us-east-1"),
        ({"subnets": {"ids": ["subnet-00000000"]}}, "subnets us-east-1"),
        ({"security_groups": {"tags": {"no": "such"}}}, "security groups us-east-1"),
        ({"kms_key": "alias/no-such"}, "disk key us-east-1"),
        ({"kms_key": "arn:aws:kms:eu-west-1:123456789012:key/1"}, "disk key us-east-1"),
        ({"instance_profile": None}, "instance profile"),
        ({"instance_profile": "no-such"}, "instance profile"),
    ],
)
def test_doctor_when_fleet_yaml_names_what_is_not_there_then_it_fails_with_the_fix(rig, changes, name):
    check = found(rig, **changes)[name]
    assert check.status is FAIL, check
    assert check.fix


@pytest.mark.parametrize(("vcpus", "status"), [(0, WARN), (4, WARN), (16, OK)])
def test_doctor_when_a_quota_is_small_then_it_is_held_against_the_limits(rig, vcpus, status):
    rig.estate.quotas.set("us-east-1", "G", "on-demand", vcpus)
    check = found(rig)["quota us-east-1 L-DB2E81BA"]
    assert check.status is status
    assert f"{vcpus} vCPU" in check.text


def test_doctor_when_every_quota_is_0_then_nothing_can_be_bought(rig):
    for bucket in ("G", "P", "Inf", "Trn", "DL"):
        rig.estate.quotas.set("us-east-1", bucket, "on-demand", 0)
    assert found(rig, capacity_types=["on-demand"])["quotas us-east-1"].status is FAIL


def test_doctor_when_the_cloud_is_away_then_everything_is_unknown_and_nothing_well(rig, monkeypatch):
    aws.use_endpoint(monkeypatch, "http://127.0.0.1:9")
    assert {check.status for check in found(rig, call_timeout_s=5).values()} == {UNKNOWN}


def rule(*cidrs, port=22, protocol="tcp", groups=()):
    return {
        "IpProtocol": protocol,
        "FromPort": port,
        "ToPort": port,
        "IpRanges": [{"CidrIp": cidr} for cidr in cidrs],
        "UserIdGroupPairs": [{"GroupId": group} for group in groups],
    }


HERE = Origin(address=ipaddress.ip_address("10.1.2.3"), text="this machine (10.1.2.3)")
NOWHERE = Origin(address=None, text="this machine")


@pytest.mark.parametrize(
    ("rules", "origin", "status"),
    [
        ([], HERE, FAIL),
        ([rule("10.0.0.0/8", port=443)], HERE, FAIL),
        ([rule("10.0.0.0/8", protocol="udp")], HERE, FAIL),
        ([rule("10.0.0.0/8")], HERE, OK),
        ([{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "10.1.0.0/16"}]}], HERE, OK),
        ([rule("10.9.0.0/16")], HERE, WARN),
        ([rule("10.0.0.0/8")], NOWHERE, UNKNOWN),
        ([rule(groups=["sg-1"])], HERE, UNKNOWN),
        ([rule("0.0.0.0/0")], HERE, WARN),
        ([{"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535, "Ipv6Ranges": [{"CidrIpv6": "::/0"}]}], HERE, WARN),
    ],
)
def test_inbound_when_rules_are_judged_then_where_ssh_comes_from_counts(rules, origin, status):
    assert judge_inbound("ssh", rules, port=22, origin=origin).status is status


def test_outbound_when_rules_are_judged_then_https_has_to_get_out():
    assert judge_outbound("out", [rule("0.0.0.0/0", port=443)]).status is OK
    assert judge_outbound("out", [rule("10.0.0.0/8", port=443)]).status is WARN
    assert judge_outbound("out", [rule("0.0.0.0/0", port=80)]).status is FAIL


@pytest.mark.parametrize(("off_s", "status"), [(0, OK), (-29, OK), (60, WARN), (-299, WARN), (301, FAIL), (-3600, FAIL)])
def test_clock_when_held_against_the_date_header_then_five_minutes_are_too_many(off_s, status):
    check = clock({"date": format_datetime(NOW, usegmt=True)}, NOW + timedelta(seconds=off_s))
    assert check.status is status


@pytest.mark.parametrize("headers", [{}, {"date": "yesterday"}, {"date": ""}])
def test_clock_when_no_date_came_then_unknown(headers):
    assert clock(headers, NOW).status is UNKNOWN


IMAGE = {"ImageId": "ami-1", "Name": "node", "RootDeviceName": "/dev/sda1", "RootDeviceType": "ebs", "State": "available"}


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, OK),
        ({"State": "pending"}, FAIL),
        ({"RootDeviceName": None}, FAIL),
        ({"RootDeviceType": "instance-store"}, FAIL),
        ({"Platform": "windows"}, FAIL),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 201}}]}, FAIL),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 900}}]}, OK),
        ({"DeprecationTime": "2026-11-30T00:00:00.000Z"}, WARN),
        ({"DeprecationTime": "2027-11-30T00:00:00.000Z"}, OK),
    ],
)
def test_image_when_judged_then_a_node_must_come_of_it(changes, status):
    assert judge_image("image", {**IMAGE, **changes}, root_volume_gib=200, now=NOW).status is status


@pytest.mark.parametrize(
    ("caller", "identity"),
    [
        ("arn:aws:iam::1:user/x/ada", "arn:aws:iam::1:user/x/ada"),
        ("arn:aws:sts::1:assumed-role/Node/i-0", "arn:aws:iam::1:role/Node"),
        ("arn:aws-cn:sts::1:assumed-role/Node/i-0", "arn:aws-cn:iam::1:role/Node"),
        ("arn:aws:iam::1:root", None),
        ("arn:aws:sts::1:federated-user/x", None),
        ("", None),
    ],
)
def test_identity_when_a_caller_is_named_then_whose_rights_count(caller, identity):
    assert identity_arn(caller) == identity
