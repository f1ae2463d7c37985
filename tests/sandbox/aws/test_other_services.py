import base64
import hashlib

import pytest
from tests.sandbox.aws.test_launch import refused


def test_fixtures_when_started_then_all_can_be_named(rig):
    region = rig.fixtures["by_region"]["us-east-1"]
    for name, kind in rig.fixtures["image_parameters"].items():
        value = rig.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
        assert value == rig.fixtures["images"][f"us-east-1/{kind}"]
    tags = [{"Name": f"tag:{key}", "Values": [value]} for key, value in rig.fixtures["security_group_tags"].items()]
    assert rig.ec2.describe_security_groups(Filters=tags)["SecurityGroups"][0]["GroupId"] == region["security_group"]
    assert rig.client("kms").describe_key(KeyId=rig.fixtures["kms_alias"])["KeyMetadata"]["Arn"] == region["kms_key"]
    assert rig.client("sts").get_caller_identity()["Account"] == rig.fixtures["account"]
    card = {"DeviceIndex": 0, "SubnetId": region["subnets"]["us-east-1c"], "Groups": [region["security_group"]]}
    one = rig.run_one(
        "us-east-1c", NetworkInterfaces=[card | {"AssociatePublicIpAddress": True}],
        IamInstanceProfile={"Name": rig.fixtures["instance_profile"]},
    )  # fmt: skip
    rig.pass_s(1)
    shown = rig.show(one)
    assert shown["PublicIpAddress"] == shown["PrivateIpAddress"]
    assert shown["IamInstanceProfile"]["Arn"].endswith(rig.fixtures["instance_profile"])
    assert shown["SecurityGroups"][0]["GroupId"] == region["security_group"]


def test_image_when_asked_by_id_then_has_a_root_device(rig):
    image = rig.ec2.describe_images(ImageIds=[rig.fixtures["images"]["us-east-1/bare"]])["Images"][0]
    assert image["RootDeviceName"] == "/dev/sda1"


def test_s3_when_the_md5_is_wrong_then_bad_digest_and_right_passes(rig):
    s3, bucket = rig.client("s3"), rig.fixtures["bucket"]
    right = base64.b64encode(hashlib.md5(b"body", usedforsecurity=False).digest()).decode()
    s3.put_object(Bucket=bucket, Key="k", Body=b"body", ContentMD5=right)
    with refused("BadDigest"):
        s3.put_object(Bucket=bucket, Key="k", Body=b"other", ContentMD5=right)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"body"
    assert s3.head_object(Bucket=bucket, Key="k")["ContentLength"] == 4


def test_s3_when_the_kms_key_is_missing_or_disabled_then_refused(rig):
    s3, kms, bucket = rig.client("s3"), rig.client("kms"), rig.fixtures["bucket"]
    asked = {"Bucket": bucket, "Key": "k", "Body": b"x", "ServerSideEncryption": "aws:kms"}
    with refused("KMS.NotFoundException"):
        s3.put_object(**asked, SSEKMSKeyId="11111111-2222-3333-4444-555555555555")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    s3.put_object(**asked, SSEKMSKeyId=key)
    kms.disable_key(KeyId=key)
    with refused("KMS.DisabledException"):
        s3.put_object(**asked, SSEKMSKeyId=key)


def test_kms_when_the_key_is_disabled_or_dying_then_neither_encrypts_nor_decrypts(rig):
    kms = rig.client("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    text = kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    kms.disable_key(KeyId=key)
    with refused("DisabledException"):
        kms.encrypt(KeyId=key, Plaintext=b"x")
    with refused("DisabledException"):
        kms.decrypt(CiphertextBlob=text)
    with refused("DisabledException"):
        kms.generate_data_key(KeyId=key, KeySpec="AES_256")
    kms.enable_key(KeyId=key)
    assert kms.decrypt(CiphertextBlob=text)["Plaintext"] == b"x"
    kms.schedule_key_deletion(KeyId=key)
    with refused("KMSInvalidStateException"):
        kms.decrypt(CiphertextBlob=text)


def test_faults_when_for_other_services_then_in_their_words(rig):
    rig.post("fault", kind="throttle", service="kms", count=1)
    with refused("ThrottlingException"):
        rig.client("kms").list_keys()
    rig.post("fault", kind="unauthorized", service="s3", action="PutObject")
    with refused("AccessDenied"):
        rig.client("s3").put_object(Bucket=rig.fixtures["bucket"], Key="k", Body=b"x")


def test_capacity_reservation_when_full_then_refused_and_its_end_frees_it(rig):
    made = rig.ec2.create_capacity_reservation(
        InstanceType="p5.48xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=1,
        InstanceMatchCriteria="targeted",
    )["CapacityReservation"]["CapacityReservationId"]  # fmt: skip
    rig.post("stock", zone="us-east-1a", instance_type="p5.48xlarge", count=0)
    target = {"CapacityReservationTarget": {"CapacityReservationId": made}}
    one = rig.run_one(CapacityReservationSpecification=target)
    rig.pass_s(1)
    assert rig.show(one)["CapacityReservationId"] == made

    def free():
        found = rig.ec2.describe_capacity_reservations(CapacityReservationIds=[made])["CapacityReservations"][0]
        return found["AvailableInstanceCount"]

    assert free() == 0
    with refused("ReservationCapacityExceeded"):
        rig.run(CapacityReservationSpecification=target)
    rig.ec2.terminate_instances(InstanceIds=[one])
    rig.pass_s(1)
    assert free() == 1


def test_capacity_block_when_not_allowed_then_its_purchase_is_refused(rig):
    offers = rig.ec2.describe_capacity_block_offerings(InstanceType="p5.48xlarge", InstanceCount=1, CapacityDurationHours=24)
    offer = offers["CapacityBlockOfferings"][0]
    assert float(offer["UpfrontFee"]) == pytest.approx(55.04 * 24)
    with refused("UnsupportedOperation"):
        rig.ec2.purchase_capacity_block(CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX")


def test_placement_group_when_used_then_shown_and_kept(rig):
    rig.ec2.create_placement_group(GroupName="g", Strategy="cluster")
    one = rig.run_one(Placement={"GroupName": "g", "AvailabilityZone": "us-east-1a"}, zone=None)
    assert rig.show(one)["Placement"]["GroupName"] == "g"
    with refused("InvalidPlacementGroup.InUse"):
        rig.ec2.delete_placement_group(GroupName="g")
    rig.ec2.terminate_instances(InstanceIds=[one])
    rig.pass_s(1)
    rig.ec2.delete_placement_group(GroupName="g")
    assert rig.ec2.describe_placement_groups()["PlacementGroups"] == []
