"""What Amazon's error codes mean, as data: code -> drawn error. ``classify`` applies it and its rules of shape.

A row is added here when a code is met that the rules of shape would get wrong.

Sources: [E] "Error codes for the Amazon EC2 API", EC2 API reference, errors overview; [C] "Common errors", same place;
[S] "Spot request status codes", EC2 user guide; [T] the throttling codes in botocore's ``retries/standard.py``; otherwise the
public report that is named. Read 2026-12-01.
"""

from dataclasses import dataclass
from typing import Final

from hostler.cloud.errors import (
    AlreadyExistsError,
    AnswerLostError,
    CloudAuthError,
    CloudConfigError,
    CloudError,
    CloudThrottledError,
    InsufficientCapacityError,
    NodeNotFoundError,
    QuotaExceededError,
    Scope,
    SpotUnavailableError,
    TeardownRefusedError,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one code means. ``scope`` counts for capacity, ``unit`` for quotas. ``source``: see the module."""

    error: type[CloudError]
    source: str
    scope: Scope = "zone"
    unit: str = ""


CODES: Final[dict[str, Meaning]] = {
    # No stock. HTTP 500, although no server is broken.
    "InsufficientInstanceCapacity": Meaning(InsufficientCapacityError, "[E]"),
    "InsufficientCapacity": Meaning(InsufficientCapacityError, "[E]"),
    "InsufficientHostCapacity": Meaning(InsufficientCapacityError, "[E]"),
    "InsufficientReservedInstanceCapacity": Meaning(InsufficientCapacityError, "[E]"),
    "UnfulfillableCapacity": Meaning(InsufficientCapacityError, "[E]"),
    "OutOfResource.placeholder-cannot-be-fulfilled": Meaning(
        InsufficientCapacityError, "kubernetes/autoscaler#5756", scope="type"
    ),
    # The zone's subnet is full: another zone has another subnet.
    "InsufficientFreeAddressesInSubnet": Meaning(InsufficientCapacityError, "[E]"),
    "Server.InsufficientInstanceCapacity": Meaning(InsufficientCapacityError, "[E] state reason"),
    # Spot: these depend on price, spot stock or the spot quota; on-demand has its own.
    "SpotMaxPriceTooLow": Meaning(SpotUnavailableError, "[E] and aws/aws-parallelcluster-node#415"),
    "MaxSpotInstanceCountExceeded": Meaning(SpotUnavailableError, "[E] and meadowdata/meadowrun#84", unit="vCPU"),
    "MaxSpotFleetRequestCountExceeded": Meaning(SpotUnavailableError, "[E]"),
    "price-too-low": Meaning(SpotUnavailableError, "[S] and hashicorp/packer#7808"),
    "capacity-not-available": Meaning(SpotUnavailableError, "[S]"),
    "capacity-oversubscribed": Meaning(SpotUnavailableError, "[S]"),
    # Our own limits.
    "VcpuLimitExceeded": Meaning(QuotaExceededError, "[E] and skypilot-org/skypilot#975", unit="vCPU"),
    "InstanceLimitExceeded": Meaning(QuotaExceededError, "[E]", unit="instances"),
    "VolumeLimitExceeded": Meaning(QuotaExceededError, "[E]", unit="volumes"),
    "MaxFleetCountExceeded": Meaning(QuotaExceededError, "runs-on/runs-on#88", unit="fleets"),
    # Too many calls. HTTP 503 or 400.
    "RequestLimitExceeded": Meaning(CloudThrottledError, "[C] [T] and aws/karpenter-provider-aws#7891"),
    "Throttling": Meaning(CloudThrottledError, "[C] [T]"),
    "PriorRequestNotComplete": Meaning(CloudThrottledError, "[T]"),
    "SlowDown": Meaning(CloudThrottledError, "[T]"),
    "TooManyRequestsException": Meaning(CloudThrottledError, "[T]"),
    "BandwidthLimitExceeded": Meaning(CloudThrottledError, "[T]"),
    "TransactionInProgressException": Meaning(CloudThrottledError, "[T]"),
    # Who we are, and what we may do.
    "UnauthorizedOperation": Meaning(CloudAuthError, "[C] and aws/karpenter-provider-aws#7370"),
    "AuthFailure": Meaning(CloudAuthError, "[C]"),
    "Blocked": Meaning(CloudAuthError, "[C]"),
    "OptInRequired": Meaning(CloudAuthError, "[C]"),
    "PendingVerification": Meaning(CloudAuthError, "[C]"),
    "InvalidClientTokenId": Meaning(CloudAuthError, "[C]"),
    "InvalidAccessKeyId": Meaning(CloudAuthError, "[C]"),
    "InvalidSecurity": Meaning(CloudAuthError, "[C]"),
    "InvalidSecurityToken": Meaning(CloudAuthError, "[C]"),
    "UnrecognizedClientException": Meaning(CloudAuthError, "[C]"),
    "MissingAuthenticationToken": Meaning(CloudAuthError, "[C]"),
    "SignatureDoesNotMatch": Meaning(CloudAuthError, "[C]"),
    "IncompleteSignature": Meaning(CloudAuthError, "[C]"),
    "RequestExpired": Meaning(CloudAuthError, "[C]"),
    "RequestTimeTooSkewed": Meaning(CloudAuthError, "[C]"),
    # The order is wrong.
    "ReservationCapacityExceeded": Meaning(CloudConfigError, "[E]: pinned to one reservation, zones cannot help"),
    "InvalidInstanceID.Malformed": Meaning(CloudConfigError, "[E]"),
    "UnknownParameter": Meaning(CloudConfigError, "[C]"),
    "MissingParameter": Meaning(CloudConfigError, "[C]"),
    "MissingAction": Meaning(CloudConfigError, "[C]"),
    "ValidationError": Meaning(CloudConfigError, "[C]"),
    "MalformedQueryString": Meaning(CloudConfigError, "[C]"),
    "ParameterNotFound": Meaning(CloudConfigError, "SSM API reference, GetParameter"),
    "VPCIdNotSpecified": Meaning(CloudConfigError, "[E]"),
    "MissingInput": Meaning(CloudConfigError, "[E]"),
    # The token was used before.
    "IdempotentParameterMismatch": Meaning(AlreadyExistsError, "[C]"),
    "IdempotentInstanceTerminated": Meaning(AlreadyExistsError, "[E]"),
    # Machines.
    "InvalidInstanceID.NotFound": Meaning(NodeNotFoundError, "[E]"),
    "OperationNotPermitted": Meaning(TeardownRefusedError, "[E] termination protection"),
    "IncorrectInstanceState": Meaning(TeardownRefusedError, "[E]"),
    "IncorrectState": Meaning(TeardownRefusedError, "[E]"),
    "DependencyViolation": Meaning(TeardownRefusedError, "[E]"),
    # A create may have had its effect.
    "InternalError": Meaning(AnswerLostError, "[C]"),
    "InternalFailure": Meaning(AnswerLostError, "[C]"),
    "Unavailable": Meaning(AnswerLostError, "[C]"),
    "ServiceUnavailable": Meaning(AnswerLostError, "[C]"),
}

SDK_ERRORS: Final[dict[str, type[CloudError]]] = {
    "NoCredentialsError": CloudAuthError,
    "PartialCredentialsError": CloudAuthError,
    "CredentialRetrievalError": CloudAuthError,
    "TokenRetrievalError": CloudAuthError,
    "NoAuthTokenError": CloudAuthError,
    "SSOError": CloudAuthError,
    "LoginError": CloudAuthError,
    "ProfileNotFound": CloudAuthError,
    "MetadataRetrievalError": CloudAuthError,
    "ParamValidationError": CloudConfigError,
    "ValidationError": CloudConfigError,
    "MissingParametersError": CloudConfigError,
    "NoRegionError": CloudConfigError,
    "BaseEndpointResolverError": CloudConfigError,
    "EndpointProviderError": CloudConfigError,
    "InvalidConfigError": CloudConfigError,
    "InvalidProxiesConfigError": CloudConfigError,
}
"""Name of a class of botocore, or of one that it derives from -> what it means. All are raised before anything is sent.
Source: botocore 1.44, exceptions.py.
"""

UNSENT: Final = ("EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError")
"""The connection never came about, so the call had no effect. Source: botocore 1.44, httpsession.py ``send``."""
