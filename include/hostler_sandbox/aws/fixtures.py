"""What the account has from the start, so that a fleet file can name it: images, a role, a security group, a key, a bucket.

Ids are the same in every run. Default VPC and a default subnet per zone are moto's own.
"""

import json
from datetime import UTC, datetime
from typing import Any, Final

from moto.ec2.models.amis import Ami
from moto.iam.models import iam_backends
from moto.kms.models import kms_backends
from moto.s3.models import s3_backends
from moto.ssm.models import Parameter, ssm_backends

from hostler_sandbox.aws.moto_server import ACCOUNT, backend

REGIONS: Final = ("us-east-1", "us-west-2")
BUCKET: Final = "hostler-backups"
PROFILE: Final = "hostler-node"
GROUP_TAG: Final = {"hostler": "nodes"}
KEY_ALIAS: Final = "alias/hostler"
IMAGE_PARAMETERS: Final = {
    "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id": "bare",
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id": "gpu",
}
"""Public SSM parameters of images. Source: Canonical's and AWS's documents on finding AMI ids."""

IMAGES: Final = {
    ("us-east-1", "gpu"): "ami-05a4db0c5a4db0c01",
    ("us-east-1", "bare"): "ami-05a4db0c5a4db0c02",
    ("us-west-2", "gpu"): "ami-05a4db0c5a4db0d01",
    ("us-west-2", "bare"): "ami-05a4db0c5a4db0d02",
}
"""An image belongs to one region, as on EC2."""

IMAGE_KINDS: Final = {ami: kind for (_, kind), ami in IMAGES.items()}
"""Image id -> what is on it, as ``NodeSpec.image`` names it."""

_TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


def set_up() -> dict[str, Any]:
    """Makes everything and returns it, by region where it differs, for ``sandbox.json``."""
    _set_up_role()
    if BUCKET not in s3_backends[ACCOUNT]["aws"].buckets:
        s3_backends[ACCOUNT]["aws"].create_bucket(BUCKET, "us-east-1")
    return {
        "account": ACCOUNT,
        "bucket": BUCKET,
        "instance_profile": PROFILE,
        "security_group_tags": GROUP_TAG,
        "kms_alias": KEY_ALIAS,
        "images": {f"{region}/{kind}": ami_id for (region, kind), ami_id in IMAGES.items()},
        "image_parameters": IMAGE_PARAMETERS,
        "regions": list(REGIONS),
        "by_region": {region: _set_up_region(region) for region in REGIONS},
    }


def _set_up_role() -> None:
    iam = iam_backends[ACCOUNT]["aws"]
    role = iam.create_role(
        role_name=PROFILE, assume_role_policy_document=json.dumps(_TRUST), path="/", permissions_boundary=None,
        description="Simulated role of nodes", tags=[], max_session_duration="3600",
    )  # fmt: skip
    iam.create_instance_profile(name=PROFILE, path="/", role_names=[role.name])


def _set_up_region(region: str) -> dict[str, Any]:
    ec2 = backend(region)
    for kind in ("gpu", "bare"):
        ami_id = IMAGES[region, kind]
        ec2.amis[ami_id] = Ami(
            ec2, ami_id=ami_id, name=f"hostler-sandbox-{kind}", description=f"Simulated Ubuntu 24.04, {kind}", owner_id=ACCOUNT,
            virtualization_type="hvm", architecture="x86_64", root_device_type="ebs", root_device_name="/dev/sda1",
            hypervisor="xen", region_name=region, public=False,
        )  # fmt: skip
    ssm = ssm_backends[ACCOUNT][region]
    for name, kind in IMAGE_PARAMETERS.items():
        # Straight into moto's store: its call refuses names under /aws, as Amazon's does for callers.
        ssm._parameters[name] = [_public_parameter(name, IMAGES[region, kind])]  # noqa: SLF001
    vpc = ec2.get_default_vpc()
    group = ec2.create_security_group("hostler-nodes", "Simulated group of nodes", vpc_id=vpc.id, tags=dict(GROUP_TAG))
    kms = kms_backends[ACCOUNT][region]
    key = kms.create_key(None, "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT", "Simulated key of Hostler", [])
    kms.create_alias(key.id, KEY_ALIAS)
    subnets = {zone: subnet.id for zone, subnet in ec2.get_default_subnets().items()}
    return {"vpc": vpc.id, "security_group": group.id, "kms_key": key.arn, "subnets": dict(sorted(subnets.items()))}


def _public_parameter(name: str, value: str) -> Parameter:
    return Parameter(
        account_id=ACCOUNT, name=name, value=value, parameter_type="String", description="Simulated image", allowed_pattern=None,
        keyid=None, last_modified_date=datetime.now(UTC), version=1, data_type="text",
    )  # fmt: skip
