"""The calls of Amazon's API that Hostler makes: ONE table, from which the policy document is made and by which it is held.

``tests/drivers/aws/test_policy.py`` reads every call out of the driver's source and plays lives on the sandbox; what is not
called is not in here, and what is called is.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from hostler.cloud.doctor import Examination
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType

User = Literal["driver", "sweep", "store", "doctor", "prices", "agent"]
"""Who makes the call. ``sweep``: the driver for ``hostler_cost_sweep``. ``agent``: nodes, with their instance profile."""

Ground = Callable[[AwsSettings, Examination], bool]
"""True when a fleet file needs the call."""


def _always(_settings: AwsSettings, _examination: Examination) -> bool:
    return True


def _spot(settings: AwsSettings, _examination: Examination) -> bool:
    return CapacityType.SPOT in settings.capacity_types


def _reserved(settings: AwsSettings, _examination: Examination) -> bool:
    return bool(settings.reservations)


def _parameters(settings: AwsSettings, _examination: Examination) -> bool:
    return any(settings.image_for(region).startswith("ssm:") for region in settings.regions)


def _profile(settings: AwsSettings, _examination: Examination) -> bool:
    return settings.instance_profile is not None


def _key(settings: AwsSettings, _examination: Examination) -> bool:
    return settings.kms_key is not None


def _queue(settings: AwsSettings, _examination: Examination) -> bool:
    return settings.interruption_queue is not None


def _bucket(_settings: AwsSettings, examination: Examination) -> bool:
    return examination.backup_uri.startswith("s3://")


def _priced(_settings: AwsSettings, examination: Examination) -> bool:
    return examination.uses_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One call, or one right that Amazon asks for beside it.

    Attributes:
        right: the IAM action, ``ec2:RunInstances``; "" when the call needs none.
        calls: the API's names of the calls that need the right, as a journal shows them; empty for a right that another call
            drags along (``dragged_by``), which no journal can show.
        is_write: it changes something; not in a policy for mode ``observe``.
    """

    right: str
    calls: tuple[str, ...]
    used_by: tuple[User, ...]
    needed: Ground = _always
    is_write: bool = False
    dragged_by: str = ""

    @property
    def service(self) -> str:
        """The SDK's name of the service."""
        name = (self.right or "sts:").partition(":")[0]
        return {"servicequotas": "service-quotas"}.get(name, name)


def _read(right: str, *used_by: User, needed: Ground = _always, calls: Iterable[str] | None = None) -> ApiCall:
    names = (right.partition(":")[2],) if calls is None else tuple(calls)
    return ApiCall(right=right, calls=names, used_by=used_by, needed=needed)


def _write(right: str, *used_by: User, needed: Ground = _always, calls: Iterable[str] | None = None) -> ApiCall:
    names = (right.partition(":")[2],) if calls is None else tuple(calls)
    return ApiCall(right=right, calls=names, used_by=used_by, needed=needed, is_write=True)


def _dragged(right: str, by: str, needed: Ground = _always) -> ApiCall:
    return ApiCall(right=right, calls=(), used_by=("driver",), needed=needed, is_write=True, dragged_by=by)


API_CALLS: Final = (
    ApiCall(right="", calls=("GetCallerIdentity",), used_by=("doctor",)),
    _read("ec2:DescribeAvailabilityZones", "driver"),
    _read("ec2:DescribeCapacityReservations", "driver", needed=_reserved),
    _read("ec2:DescribeImages", "driver", "doctor"),
    _read("ec2:DescribeInstanceStatus", "driver"),
    _read("ec2:DescribeInstanceTypeOfferings", "driver"),
    _read("ec2:DescribeInstances", "driver"),
    _read("ec2:DescribeSecurityGroups", "driver", "doctor"),
    # Also without spot in capacity_types: machines bought before it was taken out may still run.
    _read("ec2:DescribeSpotInstanceRequests", "driver"),
    _read("ec2:DescribeSpotPriceHistory", "driver", needed=_spot),
    _read("ec2:DescribeSubnets", "driver", "doctor"),
    _read("ec2:DescribeAddresses", "sweep"),
    _read("ec2:DescribeVolumes", "sweep"),
    _read("ssm:GetParameter", "driver", needed=_parameters),
    # Reading a queue takes a message off for a while: not for an observer, who looks at the machines alone.
    _write("sqs:ReceiveMessage", "driver", needed=_queue),
    _write("sqs:DeleteMessage", "driver", needed=_queue, calls=("DeleteMessageBatch",)),
    _write("ec2:RunInstances", "driver", "doctor"),
    _write("ec2:TerminateInstances", "driver", "doctor"),
    _write("ec2:DeleteVolume", "sweep"),
    _write("ec2:ReleaseAddress", "sweep"),
    # Tags in the create call itself need this right too. Source: EC2 user guide, "Grant permission to tag resources during creation".
    _dragged("ec2:CreateTags", "ec2:RunInstances"),
    # Source: IAM user guide, "Grant a user permissions to pass a role to an AWS service".
    _dragged("iam:PassRole", "ec2:RunInstances", _profile),
    # The account's first spot request makes the role. Source: EC2 user guide, "Service-linked role for Spot Instance requests".
    _dragged("iam:CreateServiceLinkedRole", "ec2:RunInstances", _spot),
    # Source: EBS user guide, "Permissions for users" of Amazon EBS encryption.
    _dragged("kms:CreateGrant", "ec2:RunInstances", _key),
    _dragged("kms:Decrypt", "ec2:RunInstances", _key),
    _dragged("kms:GenerateDataKeyWithoutPlaintext", "ec2:RunInstances", _key),
    _dragged("kms:ReEncryptFrom", "ec2:RunInstances", _key),
    _dragged("kms:ReEncryptTo", "ec2:RunInstances", _key),
    _read("kms:DescribeKey", "doctor", needed=_key),
    _read("iam:GetInstanceProfile", "doctor", needed=_profile),
    _read("iam:SimulatePrincipalPolicy", "doctor"),
    _read("servicequotas:GetAWSDefaultServiceQuota", "doctor"),
    _read("servicequotas:GetServiceQuota", "doctor"),
    _read("pricing:GetProducts", "prices", needed=_priced),
    # S3's rights are not named as its calls are. Source: S3 user guide, "Required permissions for Amazon S3 API operations".
    _read("s3:GetObject", "store", "agent", needed=_bucket, calls=("GetObject", "HeadObject")),
    _read("s3:ListBucket", "store", "agent", "doctor", needed=_bucket, calls=("ListObjectsV2",)),
    _write(
        "s3:PutObject",
        "store",
        "agent",
        "doctor",
        needed=_bucket,
        calls=("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"),
    ),
    _write("s3:AbortMultipartUpload", "agent", needed=_bucket),
    _write("s3:DeleteObject", "doctor", needed=_bucket),
)
"""By service. Everything that is not ``is_write`` only reads."""


def needed_calls(settings: AwsSettings, examination: Examination, *users: User) -> tuple[ApiCall, ...]:
    """Returns the calls that a fleet file needs, in the table's order.

    Args:
        users: only calls of these; empty: of all but the nodes.
    """
    wanted = set(users) or {"driver", "sweep", "store", "doctor", "prices"}
    return tuple(
        item
        for item in API_CALLS
        if wanted & set(item.used_by) and item.needed(settings, examination) and (examination.is_enforcing or not item.is_write)
    )
