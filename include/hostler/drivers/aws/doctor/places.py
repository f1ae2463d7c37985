"""What machines are made from, in each region: image, subnets, the nodes' role, the key of the disks."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hostler.cloud.doctor import Check, fail, ok, warn
from hostler.drivers.aws.doctor.asking import Patient, asked

_IMAGE_FIX = "set clouds.aws.image to an AMI of this region, or to ssm:/path of a public parameter"


def check_image(patient: Patient, region: str) -> Iterator[Check]:
    """Yields whether a node can be made from the image."""
    name = f"image {region}"
    image_id = asked(name, lambda: patient.lookups.image_id(region), fix=_IMAGE_FIX)
    if isinstance(image_id, Check):
        yield image_id
        return
    answer = asked(name, lambda: patient.calls.call(region, "describe_images", ImageIds=[image_id]), fix=_IMAGE_FIX)
    if isinstance(answer, Check):
        yield answer
        return
    images = answer.get("Images", ())
    if not images:
        yield fail(name, f"{image_id} is not there, or not shared with this account", _IMAGE_FIX)
        return
    yield judge_image(name, images[0], root_volume_gib=patient.settings.root_volume_gib, now=datetime.now(UTC))


def judge_image(name: str, image: Mapping[str, Any], *, root_volume_gib: int, now: datetime) -> Check:
    """Judges one image of DescribeImages; pure."""
    text = f"{image['ImageId']} {image.get('Name', '')}".rstrip()
    if wrong := _wrong_with(image):
        return fail(name, f"{text} {wrong}", _IMAGE_FIX)
    disks = [disk for disk in image.get("BlockDeviceMappings", ()) if disk.get("DeviceName") == image["RootDeviceName"]]
    size_gib = max((int(disk.get("Ebs", {}).get("VolumeSize", 0)) for disk in disks), default=0)
    if size_gib > root_volume_gib:
        fix = f"set clouds.aws.root_volume_gib to {size_gib} or more"
        return fail(name, f"{text} needs {size_gib} GiB and clouds.aws.root_volume_gib is {root_volume_gib}", fix)
    ends = str(image.get("DeprecationTime", ""))
    if ends and datetime.fromisoformat(ends) < now:
        return warn(name, f"{text} is deprecated since {ends[:10]}", "choose a newer image; its owner may withdraw it")
    return ok(name, f"{text}, {image.get('Architecture', 'architecture not told')}")


def _wrong_with(image: Mapping[str, Any]) -> str | None:
    """Returns why no node can be made from an image; None when one can."""
    if image.get("State", "available") != "available":
        return f"is {image['State']}"
    if not image.get("RootDeviceName"):
        return "has no root device"
    if image.get("RootDeviceType", "ebs") != "ebs":
        return "has no EBS root: its disk cannot be encrypted or sized"
    return "is Windows: nodes are Linux machines" if image.get("Platform") == "windows" else None


def check_subnets(patient: Patient, region: str) -> Iterator[Check]:
    """Yields whether machines find a subnet, and addresses in it."""
    name = f"subnets {region}"
    fix = "name subnets of this region in clouds.aws.subnets, by ids or tags; without it the default subnets are used"
    found = asked(name, lambda: patient.lookups.subnet_facts(region), fix=fix)
    if isinstance(found, Check):
        yield found
    elif not found:
        yield fail(name, "none is there: no machine can be made in this region", fix)
    else:
        zones = sorted({item["AvailabilityZone"] for item in found})
        free = sum(int(item.get("AvailableIpAddressCount", 0)) for item in found)
        text = f"{len(found)} in {', '.join(zones)}; {free} free addresses"
        if free < patient.examination.nodes:
            more = "use larger or more subnets, or lower limits.nodes"
            yield warn(name, f"{text}; limits.nodes is {patient.examination.nodes}", more)
        else:
            yield ok(name, text)


def check_profile(patient: Patient) -> Iterator[Check]:
    """Yields whether nodes get a role to ship backups with."""
    name, profile = "instance profile", patient.settings.instance_profile
    is_bucket = patient.examination.backup_uri.startswith("s3://")
    fix = "make a role with the policy of `hostler doctor aws --policy nodes`, put it into an instance profile, name that"
    if profile is None:
        if is_bucket:
            yield fail(name, f"none is named: nodes cannot write to {patient.examination.backup_uri}", fix)
        else:
            yield ok(name, "none is named, and nodes need none: backups do not go to S3")
        return
    short = profile.rpartition("/")[2]
    ask = lambda: patient.calls.call(  # noqa: E731 - asked where the error is drawn
        patient.regions[0], "get_instance_profile", service="iam", InstanceProfileName=short
    )
    answer = asked(name, ask, fix=fix)
    if isinstance(answer, Check):
        yield answer
        return
    roles = [role["RoleName"] for role in answer["InstanceProfile"].get("Roles", ())]
    if roles:
        text = f"{short} with role {', '.join(roles)}; what the role may is not looked at"
        yield ok(name, text)
    else:
        yield fail(name, f"{short} has no role in it", fix)


def check_key(patient: Patient, region: str) -> Iterator[Check]:
    """Yields whether the disks' key can encrypt."""
    name, key = f"disk key {region}", patient.settings.kms_key
    fix = "name a key of this region in clouds.aws.kms_key, best by an alias that every region has"
    if key is None:
        yield ok(name, "the account's default EBS key")
        return
    if key.startswith("arn:") and key.split(":")[3] != region:
        yield fail(name, f"{key} is in another region: no disk here can use it", fix)
        return
    answer = asked(name, lambda: patient.calls.call(region, "describe_key", service="kms", KeyId=key), fix=fix)
    if isinstance(answer, Check):
        yield answer
        return
    facts = answer["KeyMetadata"]
    state = facts.get("KeyState", "state not told")
    if state != "Enabled":
        # EC2 takes such a launch and ends the machine at once: a failure that looks like a lost node.
        yield fail(name, f"{key} is {state}: machines would end while they start", "enable the key, or name another")
    elif facts.get("KeyUsage", "ENCRYPT_DECRYPT") != "ENCRYPT_DECRYPT" or facts.get("KeySpec", "SYMMETRIC_DEFAULT") != (
        "SYMMETRIC_DEFAULT"
    ):
        yield fail(name, f"{key} is no symmetric encryption key", fix)
    else:
        yield ok(name, f"{key} is enabled")


def check_reservations(patient: Patient, region: str) -> Iterator[Check]:
    """Yields whether the reservations of fleet.yaml are there; nothing when it names none."""
    wanted = patient.settings.reservations
    if not wanted:
        return
    name = f"reservations {region}"
    found = asked(name, lambda: patient.lookups.reservations(region), fix="look at clouds.aws.reservations")
    if isinstance(found, Check):
        yield found
    elif found:
        free = sum(item.available_count for item in found)
        yield ok(name, f"{len(found)} active of {len(wanted)} named; {free} free machines")
    else:
        fix = "look whether they are in another region, ended, or not begun"
        yield warn(name, "none of the named ones is active here", fix)
