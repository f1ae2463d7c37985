"""What Azure's errors mean. Its codes are nested: the outer ones say only that something inside failed."""

from typing import Final

from hostler.catalog.error_rules.words import Meaning, Rule, Source, row
from hostler.cloud.errors import AnswerLostError, NodeNotFoundError, SpotUnavailableError

_READ_ON: Final = "2026-12-01"
_ARM: Final = Source("Azure Resource Manager docs, Common deployment errors", _READ_ON)
_VM: Final = Source("Azure Virtual Machines docs, Error messages and allocation failures", _READ_ON)
_SPOT: Final = Source("Azure docs, Error messages for Spot Virtual Machines and scale sets", _READ_ON)
_AKS: Final = Source("AKS docs, Troubleshoot InsufficientVCPUQuota and zone errors", _READ_ON)
_LIMITS: Final = Source("Azure docs, Request limits and throttling", _READ_ON)
_AUTH: Final = Source("Microsoft Entra docs, authentication error codes (AADSTS)", _READ_ON)


def _thread(name: str) -> Source:
    return Source(name, _READ_ON)


def _wrapper() -> Meaning:
    """Returns the row of a code that says only that something inside failed."""
    return row("retry_same_zone_later", "request", _ARM, error=AnswerLostError, is_weak=True)


_ZONAL: Final = row("next_zone", "zone+type", _thread("Azure/ARO-RP"))
_REGIONAL: Final = row("next_region", "region+type", _thread("Azure/pcs-cli#147"))
_SPOT_PRICE: Final = row("switch_capacity_type", "region+type+spot", _SPOT)
_THROTTLED: Final = row("throttle_backoff", "account+region", _LIMITS)
_DENIED: Final = row("fatal_auth", "scope", _ARM)
_WRONG: Final = row("fatal_config", "request", _ARM)
_BUSY: Final = row("teardown_retry", "resource", _ARM)

CODES: Final[dict[str, Meaning]] = {
    "SkuNotAvailable": _REGIONAL,
    "AllocationFailed": _REGIONAL,
    "ZonalAllocationFailed": _ZONAL,
    "OverconstrainedAllocationRequest": row("next_instance_type", "region+type", _thread("Azure-Samples/aks-store-demo#115")),
    "OverconstrainedZonalAllocationRequest": _ZONAL.with_(source=_thread("jenkins-infra/helpdesk#3584")),
    "AllocationTimedOut": _REGIONAL.with_(source=_VM),
    "VMSizeNotAvailable": _REGIONAL.with_(source=_VM),
    "VMSizeDoesntSupportZones": row("next_instance_type", "region+type", _VM, hints={"permanent": True}),
    "LocationNotAvailableForResourceType": row("next_region", "region+type", _ARM, hints={"permanent": True}),
    "NoRegisteredProviderFound": row("next_region", "region", _ARM, hints={"permanent": True}, is_weak=True),
    # Spot.
    "SpotPriceGreaterThanProvidedMaxPrice": _SPOT_PRICE,
    "AzureSpotFeatureNotEnabledForSubscription": row("switch_capacity_type", "account+spot", _SPOT),
    "AzureSpotIsNotSupportedForThisVMSize": row("switch_capacity_type", "type+spot", _SPOT, hints={"permanent": True}),
    "MaxPriceValueInvalid": _WRONG.with_(source=_SPOT),
    "MaxPriceChangeNotAllowed": _WRONG.with_(source=_SPOT),
    "MaxPriceChangeNotAllowedForAllocatedVMs": _WRONG.with_(source=_SPOT),
    "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines": _WRONG.with_(source=_SPOT),
    "VMPriorityCannotBeApplied": _WRONG.with_(source=_SPOT),
    "AzureSpotIsNotSupportedForThisAPIVersion": _WRONG.with_(source=_SPOT),
    "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines": _WRONG.with_(source=_SPOT),
    "AzureSpotVMNotSupportedInAvailabilitySet": _WRONG.with_(source=_SPOT),
    # Limits.
    "QuotaExceeded": row("fatal_quota", "region+family", _thread("skypilot-org/skypilot#464"), unit="vCPU"),
    "OperationNotAllowed": row("fatal_config", "request", _ARM, is_weak=True),
    "ResourceCountExceedsLimitDueToTemplate": row("fatal_quota", "region", _thread("skypilot-org/skypilot#426")),
    "ResourceQuotaExceeded": row("fatal_quota", "region", _ARM),
    "PublicIPCountLimitReached": row("fatal_quota", "region", _ARM, unit="addresses"),
    "IPv4StandardSkuPublicIpCountLimitReached": row("fatal_quota", "region", _ARM, unit="addresses"),
    "NetworkInterfaceCountLimitReached": row("fatal_quota", "region", _ARM, unit="interfaces"),
    "ErrCode_InsufficientVCPUQuota": row("fatal_quota", "region+family", _AKS, unit="vCPU"),
    "InsufficientVCPUQuota": row("fatal_quota", "region+family", _AKS, unit="vCPU"),
    "NotAvailableForSubscription": _REGIONAL,
    "AvailabilityZoneNotSupported": _ZONAL.with_(hints={"permanent": True}),
    "SubnetIsFull": row("fatal_config", "resource", _ARM),
    # Rates.
    "TooManyRequests": _THROTTLED,
    "TooManyRequestsReceived": _THROTTLED,
    "OperationNotAllowed_TooManyRequests": _THROTTLED,
    "SubscriptionRequestsThrottled": _THROTTLED,
    "ResourceRequestsThrottled": _THROTTLED,
    "ResourceCollectionRequestsThrottled": _THROTTLED,
    "TenantRequestsThrottled": _THROTTLED,
    "RetryableErrorDueToThrottling": _THROTTLED,
    # Who we are, and what we may do.
    "AuthorizationFailed": _DENIED,
    "LinkedAuthorizationFailed": _DENIED,
    "AuthenticationFailed": _DENIED,
    "InvalidAuthenticationToken": _DENIED,
    "ExpiredAuthenticationToken": _DENIED,
    "InvalidAuthenticationTokenTenant": _DENIED,
    "RequestDisallowedByPolicy": _DENIED,
    "RequestDisallowedByAzure": _DENIED,
    "ReadOnlyDisabledSubscription": _DENIED,
    "DisallowedOperation": _DENIED,
    "SubscriptionNotFound": _DENIED,
    "SubscriptionNotRegistered": _DENIED,
    "MissingSubscriptionRegistration": _DENIED,
    "DenyAssignmentAuthorizationFailed": _DENIED,
    "ResourcePurchaseValidationFailed": _DENIED.with_(source=_VM),
    "MarketplacePurchaseEligibilityFailed": _DENIED.with_(source=_VM),
    # The order is wrong.
    "InvalidParameter": _WRONG.with_(is_weak=True),
    "InvalidTemplate": _WRONG,
    "InvalidRequestContent": _WRONG,
    "InvalidRequestFormat": _WRONG,
    "InvalidResourceReference": _WRONG,
    "ImageNotFound": _WRONG,
    "PlatformImageNotFound": _WRONG,
    "GalleryImageNotFound": _WRONG,
    "PropertyChangeNotAllowed": _WRONG,
    "PrivateIPAddressInReservedRange": _WRONG,
    "NotSupported": _WRONG.with_(is_weak=True),
    "BadRequest": _WRONG.with_(is_weak=True),
    # What is there.
    "ResourceNotFound": row("retry_same_zone_later", "resource", _ARM, error=NodeNotFoundError, is_weak=True),
    "ResourceGroupNotFound": row("retry_same_zone_later", "resource", _ARM, error=NodeNotFoundError),
    "NotFound": row("retry_same_zone_later", "resource", _ARM, error=NodeNotFoundError, is_weak=True),
    "ResourceAlreadyExists": row("adopt_existing", "instance", _ARM),
    "PublicIPAddressCannotBeDeleted": _BUSY.with_(source=_thread("skyplane-project/skyplane#296")),
    "NicInUse": _BUSY,
    "NicReservedForAnotherVm": _BUSY,
    "InUseSubnetCannotBeDeleted": _BUSY,
    "InUseNetworkSecurityGroupCannotBeDeleted": _BUSY,
    "InUseVirtualNetworkCannotBeDeleted": _BUSY,
    "NetworkSecurityGroupInUse": _BUSY,
    "ResourceGroupBeingDeleted": _BUSY,
    "CannotDeleteResource": _BUSY,
    "ScopeLocked": _BUSY,
    "AnotherOperationInProgress": _BUSY.with_(is_weak=True),
    "OperationPreempted": row("retry_same_zone_later", "resource", _ARM),
    "RetryableError": row("retry_same_zone_later", "resource", _ARM, error=AnswerLostError, is_weak=True),
    # Wrappers.
    "InvalidTemplateDeployment": _WRONG.with_(is_weak=True),
    "DeploymentFailed": _wrapper(),
    "DeploymentFailureInfo": _wrapper(),
    "ResourceDeploymentFailure": _wrapper(),
    "ResourceOperationFailure": _wrapper(),
    "VMExtensionProvisioningError": _wrapper(),
    "InternalExecutionError": _wrapper(),
    "InternalServerError": _wrapper(),
    "ServerTimeout": _wrapper(),
    "VMStartTimedOut": _wrapper(),
    "OSProvisioningTimedOut": _wrapper(),
    "ProvisioningFailed": _wrapper(),
    "Conflict": row("retry_same_zone_later", "resource", _ARM, is_weak=True),
}

_QUOTA_TEXT: Final = r"exceeding (?:the )?(?:approved )?.{0,120}?(?:quota|cores)"

RULES: Final = (
    Rule(
        text=r"exceeding (?:the )?approved .{0,40}(?:low ?-?priority|spot).{0,30}quota",
        then=row(
            "fatal_quota", "region+spot", _thread("scylladb/scylla-cluster-tests#4994"), error=SpotUnavailableError, unit="vCPU"
        ),
    ),
    Rule(
        text=r"exceeding (?:the )?approved (?:total )?(?:regional )?(?:cores|v?cpus) quota|exceeding quota limits of core\b",
        then=row("fatal_quota", "region", _thread("nforgeio/neonKUBE#1671"), unit="vCPU"),
    ),
    Rule(
        text=rf"{_QUOTA_TEXT}|new limit required",
        then=row("fatal_quota", "region+family", _thread("skypilot-org/skypilot#464"), unit="vCPU"),
    ),
    Rule(
        text=r"insufficient (?:v?cpu|core)s? quota|insufficient .{0,30}v?cpu quota .{0,80}family",
        then=row("fatal_quota", "region+family", _AKS, unit="vCPU"),
    ),
    Rule(
        text=r"insufficient regional v?cpu quota|left regional v?cpu quota",
        then=row("fatal_quota", "region", _AKS, unit="vCPU"),
    ),
    Rule(
        text=r"zone(?:s|\(s\))? .{0,200}not supported\. .{0,20}supported zones? (?:for location )?.{0,40}(?:is|are) '\d"
        r"|availability zone .{0,80}not supported",
        then=_ZONAL.with_(source=_AKS, hints={"permanent": True}),
    ),
    Rule(
        text=r"has a quota of \d+ for resources of type|cannot create more than \d+",
        then=row("fatal_quota", "region", _thread("skypilot-org/skypilot#426")),
    ),
    Rule(
        text=r"max(?:imum)? price .{0,60}is (?:lower|less) than the current (?:azure )?spot|spotpricegreaterthanprovidedmaxprice",
        then=_SPOT_PRICE,
    ),
    Rule(
        text=r"overconstrained|constraints applied are",
        unless=r"availability zone|overconstrainedzonal",
        then=row("next_instance_type", "region+type", _thread("Azure-Samples/aks-store-demo#115")),
    ),
    Rule(
        text=r"overconstrained|constraints applied are",
        then=_ZONAL.with_(source=_thread("jenkins-infra/helpdesk#3584")),
    ),
    Rule(
        text=r"zonalallocationfailed|capacity for the requested vm size in this zone|(?:vm|requested) size in zone",
        then=_ZONAL,
    ),
    # "for subscription" without zones: the type is closed to us in the whole location. "Capacity Restrictions": stock.
    Rule(
        text=r"capacity restrictions",
        then=row("next_zone", "region+type", _thread("Azure/azure-cli#32628")),
    ),
    Rule(
        text=r"currently not available in location .{1,60} zones? '(?! ?')",
        then=_ZONAL.with_(source=_thread("MicrosoftDocs/azure-docs#20879")),
    ),
    Rule(
        text=r"(?:size|tier|sku).{0,300}(?:not|n't) available in (?:the )?(?:location|current region|region)"
        r"|(?:vm size|size).{0,80}(?:not allowed in your subscription|not supported for subscription) in location"
        r"|capacity for the requested vm size in this region",
        then=_REGIONAL,
    ),
    Rule(
        text=r"does not support azure spot|azure spot is not supported for this vm size",
        unless=r"api ?version",
        then=row("switch_capacity_type", "type+spot", _SPOT),
    ),
    Rule(
        text=r"does not have authorization to perform action|\baadsts\d+|disallowed by policy|if access was recently granted",
        then=_DENIED.with_(source=_AUTH),
    ),
    Rule(
        text=r"can ?not be deleted|can't be deleted|still (?:allocated|attached|in use)|is in use by",
        then=_BUSY.with_(source=_thread("skyplane-project/skyplane#296")),
    ),
)
"""Texts that decide before the code does; in order."""
