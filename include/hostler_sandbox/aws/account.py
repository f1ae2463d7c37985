"""What the simulated account holds at start (in moto), and the look-ups a launch makes in it."""

import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from moto.ec2 import ec2_backends
from moto.iam import iam_backends
from moto.kms import kms_backends
from moto.s3 import s3_backends

from hostler_sandbox.aws.launch import Network, Surroundings
from hostler_sandbox.aws.show import ACCOUNT
from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.types import REGIONS, TYPES, ZONE_LETTERS

BUCKET: Final = "hostler-backups"
PROFILE: Final = "hostler-node"
GROUP_TAGS: Final = {"hostler": "nodes"}
IMAGE_PARAMETERS: Final = {
    "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id": "bare",
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id": "gpu",
}
"""Public SSM parameters of images. Source: Canonical's and AWS' documents on finding AMI ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One capacity reservation of ``count`` machines; what is left of it is the stock of its zone and type."""

    reservation_id: str
    region: str
    zone: str
    instance_type: str
    count: int


@dataclass(slots=True)
class Account:
    """Fixtures and look-ups. ``images``: (region, AMI id) -> kind."""

    images: dict[tuple[str, str], str] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)

    def furnish(self) -> dict[str, Any]:
        """Makes everything that a fleet file names, and returns it for sandbox.json."""
        for region in REGIONS:
            backend = ec2_backends[ACCOUNT][region]
            for kind in ("bare", "gpu"):
                image = backend.register_image(name=f"sandbox-{kind}", description=f"simulated {kind} image")
                self.images[region, image.id] = kind
            vpc = next(iter(backend.get_default_subnets().values())).vpc_id
            group = backend.create_security_group("hostler-nodes", "nodes of the rehearsal", vpc_id=vpc)
            backend.create_tags([group.id], GROUP_TAGS)
        _make_profile()
        s3_backends[ACCOUNT]["aws"].create_bucket(BUCKET, "us-east-1")
        return {
            "bucket": BUCKET,
            "instance_profile": PROFILE,
            "security_group_tags": GROUP_TAGS,
            "images": {f"{region}/{kind}": image for (region, image), kind in self.images.items()},
            "image_parameters": IMAGE_PARAMETERS,
            "regions": list(REGIONS),
            "zones": [f"{region}{letter}" for region in REGIONS for letter in ZONE_LETTERS],
            "instance_types": sorted(TYPES),
        }

    def surroundings(self) -> Surroundings:
        """Returns the look-ups of a launch."""
        return Surroundings(
            image=self.image,
            network=self.network,
            profile=self.profile,
            check_kms_key=self.check_kms_key,
            reservation=self.reserved,
        )

    def image(self, region: str, image_id: str) -> str:
        """Returns the kind of an image. Raises RefusedError."""
        if (region, image_id) in self.images:
            return self.images[region, image_id]
        raise RefusedError("InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist")

    def image_of_parameter(self, region: str, name: str) -> str | None:
        """Returns the AMI id behind a public SSM parameter; None when there is no such parameter."""
        kind = IMAGE_PARAMETERS.get(name)
        return next((image for (where, image), found in self.images.items() if (where, found) == (region, kind)), None)

    def network(self, region: str, subnet_id: str | None, zone: str | None, groups: tuple[str, ...]) -> Network:
        """Returns where a launch lands. Raises RefusedError for what does not exist or does not fit together."""
        backend = ec2_backends[ACCOUNT][region]
        subnets = backend.get_default_subnets()
        if subnet_id:
            found = next((item for parts in backend.subnets.values() for item in parts.values() if item.id == subnet_id), None)
            if found is None:
                raise RefusedError("InvalidSubnetID.NotFound", f"The subnet ID '{subnet_id}' does not exist")
            if zone and found.availability_zone != zone:
                raise RefusedError("InvalidParameterValue", f"Subnet '{subnet_id}' is not in availability zone {zone}")
        elif zone and zone not in subnets:
            raise RefusedError("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
        else:
            found = subnets[zone or f"{region}a"]
        for group in groups:
            if backend.get_security_group_from_id(group) is None:
                raise RefusedError("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
        return Network(subnet_id=found.id, zone=found.availability_zone, group_ids=groups)

    def profile(self, name: str) -> tuple[str, str]:
        """Returns ARN and role of an instance profile, by name or ARN. Raises RefusedError."""
        for profile in iam_backends[ACCOUNT]["aws"].get_instance_profiles():
            if name in (profile.name, profile.arn):
                return profile.arn, profile.roles[0].name if profile.roles else ""
        raise RefusedError("InvalidParameterValue", f"Value ({name}) for parameter iamInstanceProfile.name is invalid.")

    def check_kms_key(self, region: str, key_id: str) -> None:
        """Raises RefusedError unless the key exists and is enabled."""
        key = find_kms_key(region, key_id)
        if key is None or not key.enabled:
            raise RefusedError("InvalidKmsKey.InvalidState", f"The KMS key '{key_id}' does not exist or cannot be used")

    def reserved(self, region: str, reservation_id: str) -> tuple[str, str]:
        """Returns zone and type of a capacity reservation. Raises RefusedError when there is none."""
        found = self.reservations.get(reservation_id)
        if found is None or found.region != region:
            raise RefusedError("InvalidCapacityReservationId.NotFound", f"The reservation '{reservation_id}' does not exist")
        return found.zone, found.instance_type

    def reserve(self, region: str, zone: str, instance_type: str, count: int) -> Reservation:
        """Makes a capacity reservation."""
        made = Reservation(
            reservation_id=f"cr-0{secrets.token_hex(8)}", region=region, zone=zone, instance_type=instance_type, count=count
        )
        self.reservations[made.reservation_id] = made
        return made


def find_kms_key(region: str, key_id: str) -> Any:
    """Returns moto's key by id, ARN or alias; None when there is none."""
    backend = kms_backends[ACCOUNT][region]
    try:
        return backend.keys.get(backend.any_id_to_key_id(key_id))
    except Exception:  # noqa: BLE001  # moto raises its own HTTP errors for names it cannot read: no such key
        return None


def _make_profile() -> None:
    backend = iam_backends[ACCOUNT]["aws"]
    document = '{"Version": "2012-10-17", "Statement": []}'
    backend.create_role(f"{PROFILE}-role", document, "/", None, "simulated", [], "3600")
    backend.create_instance_profile(PROFILE, "/", [f"{PROFILE}-role"])
