"""What an AWS account holds, and removals, over the real wire to moto."""

from decimal import Decimal

import pytest
from tests.clouds import aws

from hostler.cloud.errors import NodeNotFoundError, NodeNotOursError, TeardownRefusedError
from hostler.cloud.inventory import SupportsInventory, ThingKind
from hostler.cloud.tags import DEPLOYMENT

OURS = {DEPLOYMENT: aws.DEPLOYMENT}


def tagged(kind, tags):
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]


@pytest.fixture
def volume(ec2):
    """Makes a volume; all are removed afterwards."""
    made = []

    def make(tags, **more):
        values = {"AvailabilityZone": f"{aws.REGION}a", "Size": 100, "VolumeType": "gp3", **more}
        if tags:
            values["TagSpecifications"] = tagged("volume", tags)
        made.append(ec2.create_volume(**values)["VolumeId"])
        return made[-1]

    yield make
    left = {one["VolumeId"]: one for one in ec2.describe_volumes()["Volumes"]}
    for name in made:
        if name in left and not left[name]["Attachments"]:
            ec2.delete_volume(VolumeId=name)


def by_id(driver):
    return {one.thing_id: one for one in driver.list_inventory(aws.REGION)}


def test_inventory_when_listed_then_machines_volumes_and_addresses_of_every_owner_with_their_price(
    ec2, driver_for, volume, image_id
):
    driver = driver_for()
    assert isinstance(driver, SupportsInventory)
    mine, foreign = volume(OURS, Iops=4000, Throughput=225), volume({"Name": "by-hand"}, VolumeType="gp2")
    address = ec2.allocate_address(Domain="vpc", TagSpecifications=tagged("elastic-ip", OURS))["AllocationId"]
    try:
        (instance,) = ec2.run_instances(ImageId=image_id, MinCount=1, MaxCount=1, InstanceType="g5.xlarge")["Instances"]
        found = by_id(driver)
        # 100 GiB, 1,000 IOPS and 100 MiB/s above what is free
        assert found[mine].usd_per_month == Decimal("17.0000")
        assert found[foreign].usd_per_month == Decimal("10.0000")
        assert found[mine].attached_to is None
        assert found[mine].tags == OURS
        assert found[address].usd_per_month == Decimal("3.650")
        assert found[address].kind is ThingKind.ADDRESS
        assert found[instance["InstanceId"]].kind is ThingKind.MACHINE
        assert any(one.attached_to == instance["InstanceId"] for one in found.values())
    finally:
        ec2.release_address(AllocationId=address)


def test_remove_when_ours_and_unattached_then_gone_and_again_is_not_found(ec2, driver_for, volume):
    driver = driver_for()
    name = volume(OURS)
    address = ec2.allocate_address(Domain="vpc", TagSpecifications=tagged("elastic-ip", OURS))["AllocationId"]
    driver.remove_unattached(aws.REGION, ThingKind.VOLUME, name)
    driver.remove_unattached(aws.REGION, ThingKind.ADDRESS, address)
    assert not {name, address} & set(by_id(driver))
    for kind, gone in ((ThingKind.VOLUME, name), (ThingKind.ADDRESS, address)):
        with pytest.raises(NodeNotFoundError):
            driver.remove_unattached(aws.REGION, kind, gone)


@pytest.mark.parametrize("tags", [{}, {DEPLOYMENT: "another"}, {**OURS, "karpenter.sh/nodepool": "x"}])
def test_remove_when_foreign_then_stays(driver_for, volume, tags):
    driver, name = driver_for(), volume(tags)
    with pytest.raises(NodeNotOursError):
        driver.remove_unattached(aws.REGION, ThingKind.VOLUME, name)
    assert name in by_id(driver)


def test_remove_when_attached_or_a_machine_then_refused(ec2, driver_for, volume, image_id):
    driver, name = driver_for(), volume(OURS)
    (instance,) = ec2.run_instances(
        ImageId=image_id, MinCount=1, MaxCount=1, InstanceType="g5.xlarge", Placement={"AvailabilityZone": f"{aws.REGION}a"}
    )["Instances"]
    ec2.attach_volume(VolumeId=name, InstanceId=instance["InstanceId"], Device="/dev/sdf")
    with pytest.raises(TeardownRefusedError, match="is attached to"):
        driver.remove_unattached(aws.REGION, ThingKind.VOLUME, name)
    with pytest.raises(TeardownRefusedError):
        driver.remove_unattached(aws.REGION, ThingKind.MACHINE, instance["InstanceId"])
    assert by_id(driver)[name].attached_to == instance["InstanceId"]
