"""What Alibaba Cloud's errors mean. HTTP 403 is used for stock, limits and state as well as for permissions: it says nothing."""

from typing import Final

from hostler.catalog.error_rules.words import Meaning, Rule, Source, either, row
from hostler.cloud.errors import AnswerLostError, NodeNotFoundError, SpotUnavailableError

_READ_ON: Final = "2026-12-01"
_ECS: Final = Source("Alibaba Cloud ECS API reference, RunInstances, error codes", _READ_ON)
_COMMON: Final = Source("Alibaba Cloud API error center, public error codes", _READ_ON)
_EVENTS: Final = Source("Alibaba Cloud ECS user guide, system events", _READ_ON)
_TABLE: Final = Source("vendor error table in public code", _READ_ON)


def _thread(name: str) -> Source:
    return Source(name, _READ_ON)


_STOCK: Final = row("next_zone", "zone+type", _thread("gardenlinux/gardenlinux#4502"))
_TYPE: Final = row("next_instance_type", "zone+type", _thread("AliyunContainerService/docker-machine-driver-aliyunecs#40"))
_GONE_ZONE: Final = row("next_zone", "zone", _thread("cloud-barista/cb-spider#660"), hints={"permanent": True})
_QUOTA: Final = row("fatal_quota", "region", _ECS)
_RATE: Final = row("throttle_backoff", "account+region", _COMMON)
_DENIED: Final = row("fatal_auth", "account", _COMMON)
_WRONG: Final = row("fatal_config", "request", _ECS)
_BUSY: Final = row("teardown_retry", "instance", _ECS)
_LOST: Final = row("retry_same_zone_later", "region", _COMMON, error=AnswerLostError, is_weak=True)

CODES: Final[dict[str, Meaning]] = {
    "OperationDenied.NoStock": _STOCK,
    "OperationDenied.NoAvailableStock": _STOCK,
    "NodeCreate.NoStock": _STOCK,
    "ResourceNotAvailable": _STOCK.with_(is_weak=True, source=_ECS),
    "InvalidResourceType.NotSupported": _TYPE,
    "InvalidInstanceType.ValueNotSupported": _TYPE.with_(source=_ECS),
    "InvalidInstanceType.NotSupported": _TYPE.with_(source=_ECS),
    "InvalidInstanceType.ZoneNotSupported": _STOCK.with_(source=_ECS, hints={"permanent": True}),
    "InvalidInstanceType.ValueUnauthorized": _TYPE.with_(source=_ECS),
    "InvalidInstanceType.Phased-out": _TYPE.with_(source=_ECS, hints={"permanent": True}),
    "LackResource": row("fatal_config", "reservation", _ECS),
    "Invalid.PrivatePoolOptions.NoStock": row("fatal_config", "reservation", _ECS),
    "Zone.NotOnSale": _GONE_ZONE,
    "Zone.NotOpen": _GONE_ZONE.with_(source=_ECS),
    "InvalidZoneId.NotOnSale": _GONE_ZONE.with_(source=_ECS),
    "InvalidVSwitchId.IpInsufficient": row("next_zone", "zone", _ECS),
    "InvalidVSwitchId.IpNotEnough": row("next_zone", "zone", _ECS),
    "OperationDenied": row("next_instance_type", "zone+type", _thread("denverdino/aliyungo#78"), is_weak=True),
    # Spot.
    "InvalidSpotPriceLimit.LowerThanPublicPrice": row("switch_capacity_type", "zone+type+spot", _ECS),
    "InvalidSpotPrepaid": _WRONG,
    "InvalidSpotAuthorized": _DENIED.with_(source=_ECS),
    # Limits.
    "QuotaExceed.ElasticQuota": _QUOTA.with_(scope="region+type", source=_TABLE),
    "QuotaExceeded.ElasticQuota": _QUOTA.with_(scope="region+type", source=_TABLE),
    "QuotaExceed.AfterpayInstance": _QUOTA.with_(
        source=_thread("glasslion/aliyun-machine-learning-for-dummies#3"), unit="vCPU"
    ),
    "QuotaExceed.SpotInstance": _QUOTA.with_(scope="region+spot", error=SpotUnavailableError, unit="vCPU"),
    "QuotaExceed.DiskCapacity": _QUOTA.with_(unit="GiB"),
    "QuotaExceed.BuyImage": _QUOTA,
    "QuotaExceed.DeploymentSetInstanceQuotaFull": _QUOTA.with_(scope="zone"),
    "InstanceTypeQuotaExceed": _QUOTA.with_(scope="region+type"),
    "InvalidInstanceType.QuotaExceed": _QUOTA.with_(scope="region+type"),
    "LimitExceeded": _QUOTA.with_(is_weak=True),
    # Rates.
    "Throttling": _RATE,
    "Throttling.User": _RATE,
    "Throttling.Api": _RATE,
    "Throttling.Resource": _RATE,
    "ServiceUnavailable.Throttling": _RATE,
    # Who we are, and what we may do.
    "Forbidden": _DENIED.with_(is_weak=True),
    "Forbidden.RAM": _DENIED,
    "Forbidden.SubUser": _DENIED,
    "Forbidden.RiskControl": _DENIED.with_(source=_thread("cloudfoundry/bosh-alicloud-cpi-release#31")),
    "Forbidden.AccessKeyDisabled": _DENIED,
    "NoPermission": _DENIED,
    "Unauthorized": _DENIED,
    "InvalidAccessKeyId": _DENIED,
    "InvalidAccessKeyId.NotFound": _DENIED,
    "InvalidAccessKeyId.Inactive": _DENIED,
    "InvalidAccessKeySecret": _DENIED,
    "InvalidSecurityToken.Expired": _DENIED,
    "InvalidSecurityToken.Malformed": _DENIED,
    "SignatureDoesNotMatch": _DENIED,
    "IncompleteSignature": _DENIED,
    "InvalidTimeStamp.Expired": _DENIED,
    "InvalidAccountStatus.NotEnoughBalance": _DENIED.with_(source=_ECS),
    "InvalidAccountStatus.SecurityRisk": _DENIED.with_(source=_ECS),
    "Account.Arrearage": _DENIED.with_(source=_ECS),
    "InvalidPayMethod": _DENIED.with_(source=_ECS),
    "RealNameAuthenticationError": _DENIED.with_(source=_ECS),
    "UserNotInTheWhiteList": _DENIED.with_(source=_ECS),
    # The order is wrong.
    "InvalidParameter.NotMatch": _WRONG.with_(source=_thread("yunionio/cloudpods#11481")),
    "InvalidParameter": _WRONG.with_(is_weak=True),
    "MissingParameter": _WRONG,
    "InvalidImageId.NotFound": _WRONG,
    "InvalidImageId.NotSupported": _WRONG,
    "ImageNotSupportInstanceType": _WRONG,
    "InvalidInstanceType.NotFound": _WRONG,
    "InvalidVSwitchId.NotFound": _WRONG,
    "InvalidSecurityGroupId.NotFound": _WRONG,
    "InvalidKeyPairName.NotFound": _WRONG,
    "InvalidInstanceChargeType.NotFound": _WRONG,
    "InvalidRegionId.NotFound": _WRONG,
    "InvalidSystemDiskCategory.ValueNotSupported": _TYPE.with_(source=_ECS),
    "IdempotentParameterMismatch": row("adopt_existing", "request", _ECS),
    "InstanceName.Duplicate": row("adopt_existing", "instance", _ECS),
    # What is there.
    "InvalidInstanceId.NotFound": row("retry_same_zone_later", "instance", _ECS, error=NodeNotFoundError),
    "IncorrectInstanceStatus": _BUSY,
    "IncorrectInstanceStatus.Initializing": _BUSY,
    "InstanceLockedForSecurity": _BUSY,
    "InvalidOperation.DeletionProtection": _BUSY,
    "OperationDenied.DeletionProtection": _BUSY,
    "DependencyViolation": _BUSY.with_(scope="resource"),
    "OperationConflict": _BUSY,
    "LastTokenProcessing": _LOST,
    "IdempotentProcessing": _LOST,
    "InternalError": _LOST,
    "UnknownError": _LOST,
    "ServiceUnavailable": _LOST,
    # Events.
    "Instance:PreemptibleInstanceInterruption": row("replace_node", "instance", _EVENTS),
}

RULES: Final = (
    Rule(text=r"out of stock|sold out|no ?stock\b|库存不足|资源不足|售罄", then=_STOCK),
    Rule(text=r"no longer (?:available for|on) sale|zone is not (?:on sale|allowed|available for purchase)", then=_GONE_ZONE),
    Rule(text=r"out of usage", then=_TYPE.with_(source=_thread("denverdino/aliyungo#78"))),
    Rule(
        text=r"(?:this |the specified )?(?:resource|instance) ?type.{0,40}(?:is not supported|not available|not authori[sz]ed)",
        unless=r"image",
        then=_TYPE,
    ),
    Rule(
        text=either(
            r"vcpu quota.{0,40}limited by",
            r"no additional quota",
            r"exceed.{0,40}quota",
            r"quota.{0,40}exceed",
            r"maximum number of .{0,60}is exceeded",
        ),
        then=_QUOTA,
    ),
    Rule(
        text=r"not (?:have )?enough balance|arrears|overdue|riskcontrol|real-?name|余额不足|欠费",
        then=_DENIED.with_(source=_ECS),
    ),
    Rule(text=r"\bare not matched\b|does not match the", then=_WRONG.with_(source=_thread("yunionio/cloudpods#11481"))),
)
"""Texts for codes that are not listed; codes come first here."""
