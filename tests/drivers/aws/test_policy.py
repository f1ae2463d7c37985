"""The table of calls is complete and minimal: by the driver's own source, and by the journal of lives on the sandbox."""

import ast
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from botocore import xform_name
from tests.clouds import aws
from tests.drivers.aws import sandbox_account

import hostler.drivers.aws as package
from hostler.cloud.driver import OfferingQuery
from hostler.cloud.errors import CloudAuthError
from hostler.drivers.aws.api_calls import API_CALLS, needed_calls
from hostler.drivers.aws.doctor.permissions import _PROBES
from hostler.drivers.aws.policy import Place, controller_policy, nodes_policy
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType
from hostler.vault.stores import open_store

EVERY_KIND = tuple(CapacityType)
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    with sandbox_account.account(tmp_path_factory.mktemp("account")) as made:
        yield made


@pytest.fixture
def rig(sandbox, monkeypatch):
    aws.use_endpoint(monkeypatch, sandbox.aws_endpoint)
    monkeypatch.setattr("hostler.drivers.aws.doctor.doors.local_address", lambda _cidr: None)
    return sandbox


def operations_in_source():
    """Every operation that the driver's source names in a call of ``Calls``, as (service, API name)."""
    found = set()
    for path in Path(package.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"call", "pages"}:
                names = [item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
                service = [item.value.value for item in node.keywords if item.arg == "service"]
                found |= {((service or ["ec2"])[0], name) for name in names[:1]}
    found |= {("ec2", operation) for operation, _ in _PROBES.values()}
    return found


def test_table_when_held_against_the_drivers_source_then_each_call_is_in_it_and_no_other():
    in_table = {(item.service, xform_name(name)) for item in API_CALLS for name in item.calls if item.service != "s3"}
    assert operations_in_source() == in_table


def reservation(ec2):
    return ec2.create_capacity_reservation(
        InstanceType="g6.xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=1,
        InstanceMatchCriteria="targeted",
    )["CapacityReservation"]["CapacityReservationId"]  # fmt: skip


def live(driver, kinds):
    """A life of each kind: look, buy, see, hear of interruptions, end."""
    lease = f"policy{next(_NUMBERS)}"
    query = OfferingQuery(accelerator="L4", accelerators_per_node=1, capacity_types=EVERY_KIND)
    driver.list_offerings(query)
    for number, kind in enumerate(kinds):
        made = driver.launch(aws.order(deployment="acme", slot=number, lease=lease, capacity_type=kind))
        driver.get_node(aws.REGION, made.provider_id)
        driver.list_interruptions(aws.REGION)
        driver.terminate(aws.REGION, made.provider_id)
    driver.list_nodes(aws.REGION)
    driver.list_foreign(aws.REGION)


def use_store():
    from hostler.wiring.sdk_sessions import SdkSessions

    store = open_store(sandbox_account.BUCKET, client_factory=lambda: SdkSessions().client("aws", "s3", aws.REGION, None))
    store.put("a/b", b"content")
    store.get("a/b")
    store.list_keys("a/")


def seen(rig, after):
    return {(service, action) for service, action, _ in sandbox_account.wire(rig, after)}


def test_table_when_lives_of_every_kind_are_played_then_the_journal_shows_just_what_it_names(rig):
    driver = sandbox_account.driver_of(rig, capacity_types=EVERY_KIND, reservations=[reservation(aws.owner())])
    # By any other client before: the owner's own call is not the product's.
    began = sandbox_account.last(rig)
    live(driver, EVERY_KIND)
    use_store()
    wanted = needed_calls(driver._settings, sandbox_account.examination(), "driver", "store")
    by_doctor_only = {"GetObject", "HeadObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"}
    expected = {(item.service, name) for item in wanted for name in item.calls}
    assert seen(rig, began) - expected == set(), "complete"
    assert expected - seen(rig, began) <= {("s3", name) for name in by_doctor_only - {"GetObject"}}, "minimal"


def test_table_when_the_fleet_names_less_then_neither_the_calls_nor_the_rights_are_there(rig):
    driver = sandbox_account.driver_of(
        rig,
        image=rig.info["fixtures"]["images"]["us-east-1/gpu"],
        capacity_types=["on-demand"],
        instance_profile=None,
        kms_key=None,
    )
    began = sandbox_account.last(rig)
    live(driver, [CapacityType.ON_DEMAND])
    rights = {item.right for item in needed_calls(driver._settings, sandbox_account.examination(backup_uri="file:///x"))}
    assert {"ssm:GetParameter", "ec2:DescribeSpotPriceHistory", "iam:PassRole", "s3:PutObject"} & rights == set()
    assert not any(right.startswith("kms:") for right in rights)
    calls = {f"{service}:{action}" for service, action in seen(rig, began)}
    assert calls <= rights


@pytest.mark.parametrize("right", ["ec2:RunInstances", "ec2:DescribeImages", "ec2:DescribeSubnets", "ssm:GetParameter"])
def test_table_when_one_right_is_taken_away_then_a_life_fails(rig, right):
    from hostler_sandbox.state.faults import Fault

    service, action = right.split(":")
    fault = rig.faults.add(Fault(kind="unauthorized", service=service, action=action, count=None))
    try:
        with pytest.raises(CloudAuthError, match=xform_name(action)):
            live(sandbox_account.driver_of(rig), [CapacityType.ON_DEMAND])
    finally:
        rig.faults.remove(fault)


def place(**changes):
    settings = {"regions": ["us-east-1", "eu-west-1"], "image": "ami-1", **changes.pop("settings", {})}
    values = {"deployment": "acme", "settings": AwsSettings.model_validate(settings), "account": "123456789012"}
    return Place(examination=sandbox_account.examination(**changes.pop("asked", {})), **{**values, **changes})


def statements(document, action):
    return [item for item in document["Statement"] if action in item["Action"]]


def test_policy_when_machines_are_ended_then_only_with_our_tag_and_only_in_our_regions():
    (ending,) = statements(controller_policy(place()), "ec2:TerminateInstances")
    assert ending["Condition"] == {"StringEquals": {"aws:ResourceTag/hostler:deployment": "acme"}}
    assert ending["Resource"] == [
        "arn:aws:ec2:eu-west-1:123456789012:instance/*", "arn:aws:ec2:us-east-1:123456789012:instance/*",
    ]  # fmt: skip


def test_policy_when_anything_writes_then_no_statement_is_without_resource_and_none_has_a_wildcard_action():
    document = controller_policy(place(settings={"instance_profile": "n", "kms_key": "alias/k", "image": "ssm:/aws/x"}))
    writes = {item.right for item in API_CALLS if item.is_write}
    for statement in document["Statement"]:
        assert all("*" not in action for action in statement["Action"])
        if writes & set(statement["Action"]):
            assert statement["Resource"] != "*"
    named = {action for item in document["Statement"] for action in item["Action"]}
    settings = AwsSettings.model_validate(
        {"regions": ["us-east-1"], "image": "ssm:/aws/x", "instance_profile": "n", "kms_key": "k"}
    )
    assert named == {item.right for item in needed_calls(settings, sandbox_account.examination()) if item.right}


def test_policy_when_the_mode_is_observe_then_nothing_in_it_writes():
    document = controller_policy(place(asked={"is_enforcing": False}, settings={"instance_profile": "n", "kms_key": "k"}))
    rights = {action for item in document["Statement"] for action in item["Action"]}
    assert rights & {item.right for item in API_CALLS if item.is_write} == set()
    assert "ec2:DescribeInstances" in rights


def test_policy_when_fleet_yaml_names_ids_then_machines_are_made_from_those_only():
    named = {"subnets": {"ids": ["subnet-1"]}, "security_groups": {"ids": ["sg-1"]}, "capacity_types": ["on-demand"]}
    made = statements(controller_policy(place(settings={"regions": ["us-east-1"], **named})), "ec2:RunInstances")[-1]
    assert made["Resource"] == [
        "arn:aws:ec2:us-east-1::image/ami-1",
        "arn:aws:ec2:us-east-1:123456789012:subnet/subnet-1",
        "arn:aws:ec2:us-east-1:123456789012:security-group/sg-1",
    ]


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("us-east-1", "aws")]
)
def test_policy_when_in_another_partition_then_its_name_is_in_every_arn(region, partition):
    document = controller_policy(place(settings={"regions": [region], "instance_profile": "n"}))
    arns = [arn for item in document["Statement"] if item["Resource"] != "*" for arn in item["Resource"]]
    assert {arn.split(":")[1] for arn in arns} == {partition}


def test_policy_when_for_nodes_then_the_backup_prefix_and_nothing_else():
    document = nodes_policy(place())
    assert document["Statement"][0]["Resource"] == ["arn:aws:s3:::hostler-backups/acme/*"]
    assert {action for item in document["Statement"] for action in item["Action"]} == {
        "s3:AbortMultipartUpload", "s3:GetObject", "s3:ListBucket", "s3:PutObject",
    }  # fmt: skip
    assert nodes_policy(replace(place(), examination=sandbox_account.examination(backup_uri="file:///x")))["Statement"] == []
