"""The least rights, written down: the table of calls and fleet.yaml become an IAM policy document. Pure.

Resources and conditions are as narrow as Amazon's own reference allows. Source: Service Authorization Reference, "Actions,
resources, and condition keys" of Amazon EC2, IAM, KMS, S3, Systems Manager and Service Quotas. Describe calls of EC2 know no
resources; they are held to the regions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from hostler.cloud.doctor import Examination
from hostler.cloud.tags import DEPLOYMENT
from hostler.drivers.aws.api_calls import ApiCall, needed_calls
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType

PROBE_FOLDER: Final = "doctor-probe"
"""Below the backup prefix: the only place where Hostler may delete an object for the sake of a check."""

_MADE: Final = ("instance", "volume", "network-interface")
_SPOT_REQUEST: Final = "spot-instances-request"
_GLOBAL: Final = ("iam", "pricing")
"""Services whose calls do not carry the region of the fleet: no condition on it."""

Statement = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the document is to hold.

    Attributes:
        account: the account's id; ``*`` when it is not known. roles: ARNs of the roles in the instance profile; empty when they
            are not known: then the role of the profile's own name is taken, which is what the console makes.
    """

    deployment: str
    settings: AwsSettings
    examination: Examination
    account: str = "*"
    roles: tuple[str, ...] = ()

    @property
    def partition(self) -> str:
        """``aws``, or its name in China and in GovCloud."""
        region = self.settings.regions[0]
        return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"

    def arns(self, service: str, resource: str, *, account: str | None = None) -> list[str]:
        """Returns the resource's ARN in each region; ``account`` "" for things that belong to none."""
        owner = self.account if account is None else account
        return [f"arn:{self.partition}:{service}:{region}:{owner}:{resource}" for region in sorted(self.settings.regions)]

    @property
    def bucket(self) -> tuple[str, str]:
        """ARN of the bucket, and the prefix in it with a slash at its end, or ""."""
        parts = urlsplit(self.examination.backup_uri)
        prefix = parts.path.strip("/")
        return f"arn:{self.partition}:s3:::{parts.netloc}", f"{prefix}/" if prefix else ""


def controller_policy(place: Place) -> dict[str, Any]:
    """Returns the document for whoever runs Hostler: workers, triggerer, command line."""
    calls = needed_calls(place.settings, place.examination)
    rights = {item.right for item in calls if item.right}
    statements = [_looking(place, calls), *_buying(place, rights), *_beside(place, rights), *_storing(place, rights)]
    return _document([item for item in statements if item["Action"]])


def nodes_policy(place: Place) -> dict[str, Any]:
    """Returns the document for the nodes' instance profile: shipping to their prefix and nothing else."""
    if not place.examination.backup_uri.startswith("s3://"):
        return _document([])
    bucket, prefix = place.bucket
    # Nodes ship in either mode: in mode observe none is bought, but one that runs must not lose its work.
    enforcing = replace(place.examination, is_enforcing=True)
    rights = sorted({item.right for item in needed_calls(place.settings, enforcing, "agent")} - {"s3:ListBucket"})
    return _document(
        [
            {"Sid": "HostlerShip", "Effect": "Allow", "Action": rights, "Resource": [f"{bucket}/{prefix}*"]},
            _listing(bucket, prefix),
        ]
    )


def _document(statements: Sequence[Statement]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _looking(place: Place, calls: Sequence[ApiCall]) -> Statement:
    """EC2's and Service Quotas' reads: no resources to name, so they are held to the regions."""
    rights = sorted({item.right for item in calls if not item.is_write and item.right.startswith(("ec2:", "servicequotas:"))})
    return {
        "Sid": "HostlerLook",
        "Effect": "Allow",
        "Action": rights,
        "Resource": "*",
        "Condition": {"StringEquals": {"aws:RequestedRegion": sorted(place.settings.regions)}},
    }


def _buying(place: Place, rights: set[str]) -> list[Statement]:
    """Machines with our deployment's tag, made in one call with their tags, and ended only by that tag."""
    if "ec2:RunInstances" not in rights:
        return []
    settings = place.settings
    kinds = [*_MADE, *([_SPOT_REQUEST] if CapacityType.SPOT in settings.capacity_types else [])]
    tagged = {"StringEquals": {f"aws:RequestTag/{DEPLOYMENT}": place.deployment}}
    imds = {"StringEquals": {**tagged["StringEquals"], "ec2:MetadataHttpTokens": "required"}}
    disks = {**tagged, "Bool": {"ec2:Encrypted": "true"}}
    others = [kind for kind in kinds if kind not in {"instance", "volume"}]
    made = [arn for kind in kinds for arn in place.arns("ec2", f"{kind}/*")]
    return [
        _allow("HostlerMakeMachines", ["ec2:RunInstances"], place.arns("ec2", "instance/*"), imds),
        _allow("HostlerMakeDisks", ["ec2:RunInstances"], place.arns("ec2", "volume/*"), disks),
        _allow(
            "HostlerMakeWhatComesAlong",
            ["ec2:RunInstances"],
            [arn for kind in others for arn in place.arns("ec2", f"{kind}/*")],
            tagged,
        ),
        _allow("HostlerMakeFrom", ["ec2:RunInstances"], _ingredients(place), None),
        _allow(
            "HostlerTagWhatIsMade",
            ["ec2:CreateTags"],
            made,
            {"StringEquals": {**tagged["StringEquals"], "ec2:CreateAction": "RunInstances"}},
        ),
        _allow(
            "HostlerEndItsOwn",
            ["ec2:TerminateInstances"],
            place.arns("ec2", "instance/*"),
            {"StringEquals": {f"aws:ResourceTag/{DEPLOYMENT}": place.deployment}},
        ),
        _allow(
            "HostlerSweepItsOwn",
            ["ec2:DeleteVolume", "ec2:ReleaseAddress"],
            [arn for kind in ("volume", "elastic-ip") for arn in place.arns("ec2", f"{kind}/*")],
            {"StringEquals": {f"aws:ResourceTag/{DEPLOYMENT}": place.deployment}},
        ),
    ]


def _ingredients(place: Place) -> list[str]:
    """Returns what a machine is made from: by id where fleet.yaml names ids."""
    settings = place.settings
    images = {settings.image_for(region) for region in settings.regions}
    named = sorted(images) if not any(word.startswith("ssm:") for word in images) else ["*"]
    subnets = settings.subnets.ids if settings.subnets and settings.subnets.ids else ("*",)
    groups = settings.security_groups.ids if settings.security_groups and settings.security_groups.ids else ("*",)
    return [
        *(arn for word in named for arn in place.arns("ec2", f"image/{word}", account="")),
        *(arn for item in sorted(subnets) for arn in place.arns("ec2", f"subnet/{item}")),
        *(arn for item in sorted(groups) for arn in place.arns("ec2", f"security-group/{item}")),
        *(arn for item in sorted(settings.reservations) for arn in place.arns("ec2", f"capacity-reservation/{item}")),
    ]


def _beside(place: Place, rights: set[str]) -> list[Statement]:
    """What stands beside EC2: the image's parameter, the nodes' role, the key of the disks, the price list, the doctor's looks."""
    settings = place.settings
    found = []
    if "ssm:GetParameter" in rights:
        found.append(_allow("HostlerReadImageName", ["ssm:GetParameter"], _parameters(place), None))
    if "iam:PassRole" in rights:
        to = {"StringEquals": {"iam:PassedToService": _ec2_name(place)}}
        found.append(_allow("HostlerGiveNodesTheirRole", ["iam:PassRole"], _roles(place), to))
    if "iam:CreateServiceLinkedRole" in rights:
        role = f"arn:{place.partition}:iam::{place.account}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
        to = {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}}
        found.append(_allow("HostlerFirstSpotRequest", ["iam:CreateServiceLinkedRole"], [role], to))
    keys = sorted(right for right in rights if right.startswith("kms:") and right not in {"kms:DescribeKey", "kms:CreateGrant"})
    if keys:
        via = {"StringLike": {"kms:ViaService": f"ec2.*.{_suffix(place)}"}}
        found.append(_allow("HostlerUseDiskKey", keys, *_key(place, via)))
        grant = {**via, "Bool": {"kms:GrantIsForAWSResource": "true"}}
        found.append(_allow("HostlerGrantDiskKey", ["kms:CreateGrant"], *_key(place, grant)))
    if "kms:DescribeKey" in rights:
        found.append(_allow("HostlerCheckDiskKey", ["kms:DescribeKey"], *_key(place, {})))
    if queues := sorted(right for right in rights if right.startswith("sqs:")):
        found.append(_allow("HostlerHearInterruptions", queues, _queues(place), None))
    if "iam:GetInstanceProfile" in rights:
        name = (settings.instance_profile or "").rpartition("/")[2]
        arn = f"arn:{place.partition}:iam::{place.account}:instance-profile/*{name}"
        found.append(_allow("HostlerCheckProfile", ["iam:GetInstanceProfile"], [arn], None))
    if "pricing:GetProducts" in rights:
        found.append(_allow("HostlerReadPrices", ["pricing:GetProducts"], "*", None))
    # Who runs Hostler is not known when the document is written; the call shows what an identity may, and changes nothing.
    found.append(
        _allow("HostlerCheckItself", ["iam:SimulatePrincipalPolicy"], [f"arn:{place.partition}:iam::{place.account}:*"], None)
    )
    return found


def _storing(place: Place, rights: set[str]) -> list[Statement]:
    """The backup prefix."""
    if "s3:ListBucket" not in rights:
        return []
    bucket, prefix = place.bucket
    objects = sorted(rights & {"s3:GetObject", "s3:PutObject"})
    found = [_allow("HostlerBackups", objects, [f"{bucket}/{prefix}*"], None), _listing(bucket, prefix)]
    if "s3:DeleteObject" in rights:
        found.append(_allow("HostlerDeleteProbe", ["s3:DeleteObject"], [f"{bucket}/{prefix}{PROBE_FOLDER}/*"], None))
    return found


def _listing(bucket: str, prefix: str) -> Statement:
    held = {"StringLike": {"s3:prefix": [f"{prefix}*"]}} if prefix else None
    return _allow("HostlerListBackups", ["s3:ListBucket"], [bucket], held)


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str] | str, condition: Mapping[str, Any] | None) -> Statement:
    where = resources if isinstance(resources, str) else list(resources)
    held = {"Condition": dict(condition)} if condition else {}
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": where, **held}


def _parameters(place: Place) -> list[str]:
    """Returns ARNs of the image parameters; those below /aws belong to no account. Source: SSM user guide, "Public parameters"."""
    words = {(region, place.settings.image_for(region)) for region in place.settings.regions}
    found = []
    for region, word in sorted(words):
        if word.startswith("ssm:"):
            path = word.removeprefix("ssm:").lstrip("/")
            owner = "" if path.startswith("aws/") else place.account
            found.append(f"arn:{place.partition}:ssm:{region}:{owner}:parameter/{path}")
    return found


def _queues(place: Place) -> list[str]:
    """Returns ARNs of the interruption queues, of whose addresses the last part is the name."""
    settings = place.settings
    named = {(region, settings.queue_for(region)) for region in settings.regions}
    return [
        f"arn:{place.partition}:sqs:{region}:{place.account}:{str(url).rstrip('/').rpartition('/')[2]}"
        for region, url in sorted(named, key=str)
        if url is not None
    ]


def _roles(place: Place) -> list[str]:
    name = (place.settings.instance_profile or "").rpartition("/")[2]
    return sorted(place.roles) or [f"arn:{place.partition}:iam::{place.account}:role/{name}"]


def _key(place: Place, condition: Mapping[str, Any]) -> tuple[list[str], Mapping[str, Any]]:
    """Returns resources and condition of the disks' key. An alias is no resource: the keys that it names are held by condition."""
    word = place.settings.kms_key or ""
    if word.startswith("arn:") and ":alias/" not in word:
        return [word], condition
    alias = word.rpartition(":")[2]
    if alias.startswith("alias/"):
        return place.arns("kms", "key/*"), {**condition, "ForAnyValue:StringEquals": {"kms:ResourceAliases": alias}}
    return place.arns("kms", f"key/{word}"), condition


def _suffix(place: Place) -> str:
    return "amazonaws.com.cn" if place.partition == "aws-cn" else "amazonaws.com"


def _ec2_name(place: Place) -> str:
    return f"ec2.{_suffix(place)}"
