"""What Amazon's error codes, spot states and notices mean: one table for the driver and for texts.

A row is added here when a code is met that the rules of shape would get wrong.
"""

from typing import Final

from hostler.catalog.error_rules.words import Meaning, Rule, Source, row
from hostler.cloud.errors import (
    AlreadyExistsError,
    AnswerLostError,
    InsufficientCapacityError,
    NodeNotFoundError,
    SpotUnavailableError,
)

_READ_ON: Final = "2026-12-01"
_ERRORS: Final = Source("EC2 API reference, Error codes for the Amazon EC2 API, client and server errors", _READ_ON)
_COMMON: Final = Source("EC2 API reference, Common errors", _READ_ON)
_SPOT: Final = Source("EC2 user guide, Spot request status codes", _READ_ON)
_STATES: Final = Source("EC2 API reference, StateReason", _READ_ON)
_SDK: Final = Source("botocore 1.44, retries/standard.py, throttling codes", _READ_ON)
_SSM: Final = Source("SSM API reference, GetParameter", _READ_ON)
_BLOCKS: Final = Source("EC2 user guide, Capacity Blocks for ML", _READ_ON)
_FLEET: Final = Source("aws/karpenter-provider-aws, fleet errors that mean no capacity", _READ_ON)

_ACCOUNT: Final = "account"
_RATE: Final = "account+region"
_BUCKET: Final = "region+family"
_STOCK: Final = "zone+type"
_SPOT_STOCK: Final = "zone+type+spot"
_OPEN: Final = {"must_cancel_request": True}
"""A spot request in a holding state stays open, launches later and bills. Source: klahnakoski/SpotManager#7."""


def _thread(name: str) -> Source:
    return Source(name, _READ_ON)


def _lost(source: Source) -> Meaning:
    """Returns the row of a fault of the cloud's own: a create may have had its effect."""
    return row("retry_same_zone_later", "region", source, error=AnswerLostError, is_weak=True)


CODES: Final[dict[str, Meaning]] = {
    # No stock. HTTP 500, although no server is broken.
    "InsufficientInstanceCapacity": row("next_zone", _STOCK, _ERRORS),
    "InsufficientCapacity": row("next_zone", _STOCK, _ERRORS),
    "InsufficientHostCapacity": row("next_zone", _STOCK, _ERRORS),
    "InsufficientCapacityOnHost": row("next_zone", "host", _thread("aws/aws-sdk-js-v3#5340")),
    "InsufficientReservedInstanceCapacity": row("next_zone", _STOCK, _ERRORS),
    "UnfulfillableCapacity": row("next_zone", _STOCK, _ERRORS),
    "OutOfResource.placeholder-cannot-be-fulfilled": row("next_instance_type", "group", _thread("kubernetes/autoscaler#5756")),
    # The zone's subnet is full: another zone has another subnet.
    "InsufficientFreeAddressesInSubnet": row("next_zone", "zone", _ERRORS),
    "Server.InsufficientInstanceCapacity": row("next_zone", _STOCK, _STATES),
    # Spot: these depend on price, spot stock or the spot quota; on-demand has its own.
    "SpotMaxPriceTooLow": row("switch_capacity_type", _SPOT_STOCK, _thread("aws/aws-parallelcluster-node#415")),
    "MaxSpotInstanceCountExceeded": row(
        "fatal_quota", f"{_BUCKET}+spot", _thread("meadowdata/meadowrun#84"), error=SpotUnavailableError, unit="vCPU"
    ),
    "MaxSpotFleetRequestCountExceeded": row("fatal_quota", f"{_RATE}+spot", _ERRORS, error=SpotUnavailableError, unit="fleets"),
    "price-too-low": row("switch_capacity_type", _SPOT_STOCK, _thread("hashicorp/packer#7808"), hints=_OPEN),
    "capacity-not-available": row("next_zone", _SPOT_STOCK, _SPOT, error=SpotUnavailableError, hints=_OPEN),
    "capacity-oversubscribed": row("next_zone", _SPOT_STOCK, _SPOT, error=SpotUnavailableError, hints=_OPEN),
    "not-scheduled-yet": row("no_action", "request", _SPOT, hints=_OPEN),
    "pending-evaluation": row("no_action", "request", _SPOT),
    "pending-fulfillment": row("no_action", "request", _SPOT),
    "launch-group-constraint": row("next_zone", _SPOT_STOCK, _SPOT, error=SpotUnavailableError, hints=_OPEN),
    "az-group-constraint": row("next_zone", _SPOT_STOCK, _SPOT, error=SpotUnavailableError, hints=_OPEN),
    "placement-group-constraint": row("next_zone", _SPOT_STOCK, _SPOT, error=SpotUnavailableError, hints=_OPEN),
    "constraint-not-fulfillable": row("fatal_config", "request", _SPOT, hints=_OPEN),
    "bad-parameters": row("fatal_config", "request", _SPOT),
    "limit-exceeded": row("fatal_quota", "region", _SPOT, unit="volumes"),
    "schedule-expired": row("switch_capacity_type", _SPOT_STOCK, _SPOT),
    "canceled-before-fulfillment": row("no_action", "request", _SPOT),
    "request-canceled-and-instance-running": row("no_action", "request", _SPOT),
    "system-error": row("retry_same_zone_later", "request", _SPOT, is_weak=True),
    "marked-for-termination": row("replace_node", "instance", _SPOT),
    "marked-for-stop": row("replace_node", "instance", _SPOT),
    "instance-terminated-by-price": row("replace_node", "instance", _SPOT),
    "instance-terminated-no-capacity": row("replace_node", "instance", _SPOT),
    "instance-terminated-capacity-oversubscribed": row("replace_node", "instance", _SPOT),
    "instance-terminated-launch-group-constraint": row("replace_node", "instance", _SPOT),
    "instance-terminated-by-service": row("replace_node", "instance", _SPOT),
    "instance-terminated-by-experiment": row("replace_node", "instance", _SPOT),
    "instance-terminated-by-user": row("no_action", "instance", _SPOT),
    "instance-terminated-by-schedule": row("no_action", "instance", _SPOT),
    "spot-instance-terminated-by-user": row("no_action", "instance", _SPOT),
    "instance-stopped-by-price": row("replace_node", "instance", _SPOT),
    "instance-stopped-no-capacity": row("replace_node", "instance", _SPOT),
    "instance-stopped-capacity-oversubscribed": row("replace_node", "instance", _SPOT),
    "instance-stopped-by-experiment": row("replace_node", "instance", _SPOT),
    "instance-stopped-by-user": row("no_action", "instance", _SPOT),
    # Our own limits.
    "VcpuLimitExceeded": row("fatal_quota", _BUCKET, _thread("skypilot-org/skypilot#975"), unit="vCPU"),
    "InstanceLimitExceeded": row("fatal_quota", "region+type", _ERRORS, unit="instances"),
    "VolumeLimitExceeded": row("fatal_quota", "region", _ERRORS, unit="volumes"),
    "MaxIOPSLimitExceeded": row("fatal_quota", "region", _ERRORS, unit="IOPS"),
    "AddressLimitExceeded": row("fatal_quota", "region", _ERRORS, unit="addresses"),
    "NetworkInterfaceLimitExceeded": row("fatal_quota", "region", _ERRORS, unit="interfaces"),
    "VpcLimitExceeded": row("fatal_quota", "region", _ERRORS, unit="VPCs"),
    "HostLimitExceeded": row("fatal_quota", _BUCKET, _ERRORS, unit="hosts"),
    "MaxFleetCountExceeded": row("fatal_quota", _RATE, _thread("runs-on/runs-on#88"), unit="fleets"),
    "ServiceQuotaExceededException": row("fatal_quota", _RATE, _COMMON),
    # Too many calls. HTTP 503 or 400.
    "RequestLimitExceeded": row("throttle_backoff", _RATE, _thread("aws/karpenter-provider-aws#7891")),
    "Throttling": row("throttle_backoff", _RATE, _COMMON),
    "ThrottlingException": row("throttle_backoff", _RATE, _SDK),
    "EC2ThrottledException": row("throttle_backoff", _RATE, _SDK),
    "PriorRequestNotComplete": row("throttle_backoff", _RATE, _SDK),
    "SlowDown": row("throttle_backoff", _RATE, _SDK),
    "TooManyRequestsException": row("throttle_backoff", _RATE, _SDK),
    "BandwidthLimitExceeded": row("throttle_backoff", _RATE, _SDK),
    "TransactionInProgressException": row("throttle_backoff", _RATE, _SDK),
    # Who we are, and what we may do.
    "UnauthorizedOperation": row("fatal_auth", _ACCOUNT, _thread("aws/karpenter-provider-aws#7370")),
    "AuthFailure": row("fatal_auth", _ACCOUNT, _COMMON),
    "AccessDenied": row("fatal_auth", _ACCOUNT, _COMMON),
    "AccessDeniedException": row("fatal_auth", _ACCOUNT, _COMMON),
    "Blocked": row("fatal_auth", _ACCOUNT, _COMMON),
    "OptInRequired": row("fatal_auth", _ACCOUNT, _COMMON),
    "PendingVerification": row("fatal_auth", _ACCOUNT, _COMMON),
    "InvalidClientTokenId": row("fatal_auth", _ACCOUNT, _COMMON),
    "InvalidAccessKeyId": row("fatal_auth", _ACCOUNT, _COMMON),
    "InvalidSecurity": row("fatal_auth", _ACCOUNT, _COMMON),
    "InvalidSecurityToken": row("fatal_auth", _ACCOUNT, _COMMON),
    "UnrecognizedClientException": row("fatal_auth", _ACCOUNT, _COMMON),
    "MissingAuthenticationToken": row("fatal_auth", _ACCOUNT, _COMMON),
    "SignatureDoesNotMatch": row("fatal_auth", _ACCOUNT, _COMMON),
    "IncompleteSignature": row("fatal_auth", _ACCOUNT, _COMMON),
    "RequestExpired": row("fatal_auth", _ACCOUNT, _COMMON),
    "ExpiredToken": row("fatal_auth", _ACCOUNT, _COMMON),
    "ExpiredTokenException": row("fatal_auth", _ACCOUNT, _COMMON),
    "RequestTimeTooSkewed": row("fatal_auth", _ACCOUNT, _COMMON),
    # The order is wrong.
    "ReservationCapacityExceeded": row("fatal_config", "reservation", _ERRORS),
    "InvalidInstanceID.Malformed": row("fatal_config", "request", _ERRORS),
    "UnknownParameter": row("fatal_config", "request", _COMMON),
    "MissingParameter": row("fatal_config", "request", _COMMON),
    "InvalidParameter": row("fatal_config", "request", _COMMON),
    "InvalidParameterValue": row("fatal_config", "request", _COMMON),
    "InvalidParameterCombination": row("fatal_config", "request", _COMMON),
    "InvalidAMIID.NotFound": row("fatal_config", "request", _ERRORS),
    "InvalidAMIID.Unavailable": row("fatal_config", "request", _ERRORS),
    "InvalidSubnetID.NotFound": row("fatal_config", "request", _ERRORS),
    "InvalidKeyPair.NotFound": row("fatal_config", "request", _ERRORS),
    "InvalidGroup.NotFound": row("fatal_config", "request", _ERRORS),
    "MissingAction": row("fatal_config", "request", _COMMON),
    "ValidationError": row("fatal_config", "request", _COMMON, is_weak=True),
    "MalformedQueryString": row("fatal_config", "request", _COMMON),
    "ParameterNotFound": row("fatal_config", "request", _SSM),
    "VPCIdNotSpecified": row("fatal_config", "request", _ERRORS),
    "MissingInput": row("fatal_config", "request", _ERRORS),
    "Unsupported": row("fatal_config", "request", _ERRORS, is_weak=True),
    "UnsupportedOperation": row("fatal_config", "request", _ERRORS),
    # The token was used before.
    "IdempotentParameterMismatch": row("adopt_existing", "request", _COMMON, error=AlreadyExistsError),
    "IdempotentInstanceTerminated": row("adopt_existing", "request", _ERRORS, error=AlreadyExistsError),
    # Machines.
    "InvalidInstanceID.NotFound": row("retry_same_zone_later", "instance", _ERRORS, error=NodeNotFoundError),
    "OperationNotPermitted": row("teardown_retry", "instance", _ERRORS),
    "IncorrectInstanceState": row("teardown_retry", "instance", _ERRORS),
    "IncorrectState": row("teardown_retry", "resource", _ERRORS),
    "DependencyViolation": row("teardown_retry", "resource", _ERRORS),
    "VolumeInUse": row("teardown_retry", "resource", _ERRORS),
    "InvalidIPAddress.InUse": row("teardown_retry", "resource", _ERRORS),
    # Why a machine changed its state. A person's or the guest's own shutdown is no reclaim.
    "Server.SpotInstanceTermination": row("replace_node", "instance", _STATES),
    "Server.SpotInstanceShutdown": row("replace_node", "instance", _STATES),
    "Server.ScheduledStop": row("replace_node", "instance", _STATES),
    "Server.InternalError": row("replace_node", "instance", _STATES),
    "Client.UserInitiatedShutdown": row("no_action", "instance", _STATES),
    "Client.UserInitiatedHibernate": row("no_action", "instance", _STATES),
    "Client.InstanceInitiatedShutdown": row("no_action", "instance", _STATES),
    "Client.InstanceTerminated": row("no_action", "instance", _STATES),
    "Client.InternalError": row("fatal_config", "request", _STATES),
    "Client.InvalidSnapshot.NotFound": row("fatal_config", "request", _STATES),
    "Client.VolumeLimitExceeded": row("fatal_quota", "region", _STATES, unit="volumes"),
    # A create may have had its effect.
    "InternalError": _lost(_COMMON),
    "InternalFailure": _lost(_COMMON),
    "Unavailable": _lost(_COMMON),
    "ServiceUnavailable": _lost(_COMMON),
}

_NOT_IN_ZONE: Final = row(
    "next_zone", _STOCK, _thread("skypilot-org/skypilot#22"), error=InsufficientCapacityError, hints={"permanent": True}
)

_SAGEMAKER: Final = Source("SageMaker developer guide, capacity and service limit errors", _READ_ON)
_EKS: Final = Source("EKS user guide, Troubleshooting, insufficient capacity", _READ_ON)

OPENING: Final = (
    Rule(
        text=r"availability zone, does not currently have sufficient capacity|unsupportedavailabilityzone",
        then=row("next_zone", "zone", _EKS),
    ),
    Rule(
        text=r"parameter availability ?zone is invalid.{0,200}following availability zones",
        then=row("next_zone", "zone", _ERRORS, hints={"permanent": True}),
    ),
)
"""Texts that name zones which would do: they count more than the code that comes with them."""

RULES: Final = (
    # What the listed codes come with, for wrappers that drop the code.
    Rule(text=r"current vcpu limit of \d+", then=CODES["VcpuLimitExceeded"]),
    Rule(text=r"max spot instance count exceeded", then=CODES["MaxSpotInstanceCountExceeded"]),
    Rule(text=r"quota for maximum fleet requests", then=CODES["MaxFleetCountExceeded"]),
    Rule(
        text=r"unable to provision requested (?:ml )?compute capacity",
        then=row("next_instance_type", "region+type", _SAGEMAKER),
    ),
    Rule(
        text=r"account-level service limit .{1,120} is \d", then=row("fatal_quota", "region+type", _SAGEMAKER, unit="instances")
    ),
    Rule(text=r"not supported in (?:your|the) requested availability zone", then=_NOT_IN_ZONE),
    Rule(text=r"instance type.{0,80}not (?:offered|available) in (?:the |this |your )?availability zone", then=_NOT_IN_ZONE),
    Rule(
        text=r"the requested configuration is currently not supported",
        then=row("fatal_config", "request", _ERRORS),
    ),
    Rule(
        text=r"capacity block|capacity reservation",
        effects=frozenset({"create", "unknown", "start"}),
        then=row("fatal_config", "reservation", _BLOCKS),
    ),
    Rule(
        text=r"spot request price of .{1,20} is lower than the minimum",
        then=row("switch_capacity_type", _SPOT_STOCK, _thread("aws/aws-parallelcluster-node#415")),
    ),
    Rule(
        text=r"(?:allunavailable|all requested instance types were unavailable|insufficient capacity for all requested)",
        then=row("next_instance_type", "region+type", _FLEET),
    ),
    Rule(
        text=r"could not launch (?:on-demand|spot) instances",
        unless=r"limit|quota|count ?exceeded|unauthori[sz]ed",
        then=row("next_instance_type", "group", _thread("kubernetes/autoscaler#5756")),
    ),
)
"""Texts for codes that are not listed, or are listed as weak; in order."""
