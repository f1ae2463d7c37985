"""What Google's errors mean: Compute Engine, Cloud TPU, and the rate limits that all its services share."""

from typing import Final

from hostler.catalog.error_rules.words import Meaning, Rule, Source, either, row
from hostler.cloud.errors import AnswerLostError, NodeNotFoundError, SpotUnavailableError

_READ_ON: Final = "2026-12-01"
_STOCK_PAGE: Final = Source("Compute Engine docs, Resource availability errors", _READ_ON)
_VM_PAGE: Final = Source("Compute Engine docs, Troubleshooting VM creation", _READ_ON)
_ERRORS_PAGE: Final = Source("google.rpc.Code and the API design guide, Errors", _READ_ON)
_RESERVED: Final = Source("kubernetes/autoscaler, cluster-autoscaler/cloudprovider/gce, error codes", _READ_ON)
_RATE_PAGE: Final = Source("Compute Engine docs, Rate quotas", _READ_ON)


def _thread(name: str) -> Source:
    return Source(name, _READ_ON)


_SOLD_OUT: Final = row("next_zone", "zone", _thread("googlefonts/fontbakery-dashboard#81"))
_TYPE_SOLD_OUT: Final = row("next_zone", "zone+type", _thread("kubernetes/k8s.io#9834"))

CODES: Final[dict[str, Meaning]] = {
    "ZONE_RESOURCE_POOL_EXHAUSTED": _SOLD_OUT,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": _SOLD_OUT,
    "RESOURCE_POOL_EXHAUSTED": _SOLD_OUT,
    "REGION_RESOURCE_POOL_EXHAUSTED": row("next_region", "region", _STOCK_PAGE),
    "STOCKOUT": _SOLD_OUT,
    "GCE_STOCKOUT": _SOLD_OUT,
    "INSUFFICIENTCAPACITY": _TYPE_SOLD_OUT,
    "RESERVATION_CAPACITY_EXCEEDED": row("fatal_config", "reservation", _RESERVED),
    "RESERVATION_NOT_READY": row("retry_same_zone_later", "reservation", _RESERVED),
    "RESERVATION_NOT_FOUND": row("fatal_config", "reservation", _RESERVED),
    "RESERVATION_INCOMPATIBLE": row("fatal_config", "reservation", _RESERVED),
    "INVALID_RESERVATION": row("fatal_config", "reservation", _RESERVED),
    "UNSUPPORTED_TPU_CONFIGURATION": row("fatal_config", "request", _RESERVED),
    "IP_SPACE_EXHAUSTED": row("fatal_config", "region", _RESERVED),
    "IP_SPACE_EXHAUSTED_WITH_DETAILS": row("fatal_config", "region", _RESERVED),
    "VM_EXTERNAL_IP_ACCESS_POLICY_CONSTRAINT": row("fatal_auth", "project", _RESERVED),
    "GCE_QUOTA_EXCEEDED": row("fatal_quota", "region", _RESERVED),
    "UNSUPPORTED_OPERATION": row("fatal_config", "request", _VM_PAGE, is_weak=True),
    "VM_MIN_COUNT_NOT_REACHED": row("next_zone", "zone+type", _thread("skypilot-org/skypilot#4333"), is_weak=True),
    "RESOURCE_AVAILABILITY": _TYPE_SOLD_OUT.with_(is_weak=True),
    "QUOTA_EXCEEDED": row("fatal_quota", "region", _thread("skypilot-org/skypilot#4333")),
    "QUOTAEXCEEDED": row("fatal_quota", "region", _VM_PAGE),
    "LIMIT_EXCEEDED": row("fatal_quota", "region", _VM_PAGE),
    "RATE_LIMIT_EXCEEDED": row("throttle_backoff", "project", _RATE_PAGE),
    "RATELIMITEXCEEDED": row("throttle_backoff", "project", _RATE_PAGE),
    "USERRATELIMITEXCEEDED": row("throttle_backoff", "project", _RATE_PAGE),
    "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED": row("throttle_backoff", "project+region", _RATE_PAGE),
    "OPERATION_RATE_EXCEEDED": row("throttle_backoff", "project+region", _RATE_PAGE),
    "RESOURCE_OPERATION_RATE_EXCEEDED": row("throttle_backoff", "resource", _RATE_PAGE),
    "RESOURCE_EXHAUSTED": row("next_zone", "zone+type", _ERRORS_PAGE, is_weak=True),
    "RESOURCEEXHAUSTED": row("next_zone", "zone+type", _ERRORS_PAGE, is_weak=True),
    "PERMISSION_DENIED": row("fatal_auth", "project", _ERRORS_PAGE, is_weak=True),
    "PERMISSIONDENIED": row("fatal_auth", "project", _ERRORS_PAGE, is_weak=True),
    "PERMISSIONS_ERROR": row("fatal_auth", "project", _VM_PAGE),
    "FORBIDDEN": row("fatal_auth", "project", _ERRORS_PAGE, is_weak=True),
    "UNAUTHENTICATED": row("fatal_auth", "project", _ERRORS_PAGE),
    "IAM_PERMISSION_DENIED": row("fatal_auth", "project", _ERRORS_PAGE),
    "SERVICE_DISABLED": row("fatal_auth", "project", _ERRORS_PAGE),
    "ACCESSNOTCONFIGURED": row("fatal_auth", "project", _ERRORS_PAGE),
    "BILLING_DISABLED": row("fatal_auth", "project", _ERRORS_PAGE),
    "ALREADY_EXISTS": row("adopt_existing", "instance", _ERRORS_PAGE),
    "ALREADYEXISTS": row("adopt_existing", "instance", _ERRORS_PAGE),
    "RESOURCE_ALREADY_EXISTS": row("adopt_existing", "instance", _VM_PAGE),
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": row("teardown_retry", "resource", _VM_PAGE),
    "RESOURCEINUSEBYANOTHERRESOURCE": row("teardown_retry", "resource", _VM_PAGE),
    "RESOURCE_NOT_READY": row("teardown_retry", "resource", _VM_PAGE),
    "RESOURCENOTREADY": row("teardown_retry", "resource", _VM_PAGE),
    "RESOURCE_NOT_FOUND": row("retry_same_zone_later", "resource", _VM_PAGE, error=NodeNotFoundError, is_weak=True),
    "INVALID_ARGUMENT": row("fatal_config", "request", _ERRORS_PAGE, is_weak=True),
    "INVALID_USAGE": row("fatal_config", "request", _VM_PAGE, is_weak=True),
    "CONDITION_NOT_MET": row("fatal_config", "request", _VM_PAGE, is_weak=True),
    "CONDITIONNOTMET": row("fatal_config", "request", _VM_PAGE, is_weak=True),
    "INTERNAL_ERROR": row("retry_same_zone_later", "zone", _VM_PAGE, error=AnswerLostError, is_weak=True),
    "BACKENDERROR": row("retry_same_zone_later", "zone", _ERRORS_PAGE, error=AnswerLostError, is_weak=True),
    "DEADLINE_EXCEEDED": row("retry_same_zone_later", "zone", _ERRORS_PAGE, error=AnswerLostError, is_weak=True),
    "UNAVAILABLE": row("retry_same_zone_later", "zone", _ERRORS_PAGE, error=AnswerLostError, is_weak=True),
    "TERMINATE_ON_HOST_MAINTENANCE": row("replace_node", "instance", _VM_PAGE),
    "SHUTDOWN_ON_HOST_MAINTENANCE": row("replace_node", "instance", _VM_PAGE),
    "MIGRATE_ON_HOST_MAINTENANCE": row("no_action", "instance", _VM_PAGE),
}

_ALL_REGIONS: Final = (
    r"quota '?(?:\w*all_regions|\w*-all-regions[\w-]*)'?|gpus[_-]all[_-]regions|cpus[_-]all[_-]regions|limit: [\d.]+ globally"
)

RULES: Final = (
    # Quotas name their metric; rates ("requests per minute") are met by the shared rules before these.
    Rule(
        text=rf"(?:{_ALL_REGIONS})",
        then=row("fatal_quota", "project", _thread("fastai/course-v3#165"), hints={"global": True}),
    ),
    Rule(
        text=r"quota (?:limit )?'?tpu\w*(?:preemptible|spot)\w*|quota '?preemptible_\w*gpus",
        then=row("fatal_quota", "region+type+spot", _thread("marin-community/marin#1612"), error=SpotUnavailableError),
    ),
    Rule(
        text=r"quota (?:limit )?'?(?:tpu\w*|(?:committed_)?nvidia_\w*gpus|\w*nvidia_\w*)'? ?(?:has been )?(?:exceeded|exhausted)",
        then=row("fatal_quota", "region+type", _thread("marin-community/marin#87")),
    ),
    Rule(
        text=r"quota (?:limit )?'?[\w.-]+'? ?(?:has been )?(?:exceeded|exhausted)\b",
        then=row("fatal_quota", "region", _thread("skypilot-org/skypilot#4333")),
    ),
    Rule(
        text=r"quota metrics exceed quota limits|exceeds? (?:allowed|the) quota|quota exceeded for quota metric",
        then=row("fatal_quota", "region", _thread("google-deepmind/xmanager#29")),
    ),
    # Stock. An empty list of zones says that no zone of the region has it.
    Rule(
        text=r"zonesavailable['\"]?: ?(?:''|\"\"|\[ ?\])",
        then=row("next_region", "region+type", _thread("GoogleCloudPlatform/ai-on-gke#849")),
    ),
    Rule(
        text=r"insufficient reserved capacity|reservation .{0,80}(?:does not have enough|insufficient|exhausted|no capacity)"
        r"|specified reservations? .{0,120}(?:does not exist|not have|cannot|unavailable|incompatible)",
        then=row("fatal_config", "reservation", _thread("skypilot-org/skypilot#4579")),
    ),
    Rule(
        text=r"\bregion '?[\w/-]+'? does not have enough resources",
        then=row("next_region", "region", _STOCK_PAGE),
    ),
    Rule(
        text=r"does not have enough resources|resource_pool_exhausted",
        unless=r"resource type: ?(?:compute|gpu|tpu|vm|accelerator)|vmtype|accelerator\(s\)|vm instance (?:with|is currently)",
        then=_SOLD_OUT,
    ),
    Rule(
        text=r"does not have enough resources|resource_pool_exhausted|currently unavailable in the [\w-]+ zone"
        r"|no more capacity in the zone|currently unavailable in zone",
        then=_TYPE_SOLD_OUT,
    ),
    # Gone before it was up: no failure of the launch, and no reason to ban the place for long (kubernetes/autoscaler#2557).
    Rule(
        text=r"failed to start due to preemption",
        effects=frozenset({"create", "start", "unknown"}),
        then=row("next_zone", "zone+type+spot", _thread("dstackai/dstack#521")),
    ),
    # A type that a zone never had.
    Rule(
        text=r"\b(?:machine|accelerator)(?: ?types?)?\b.{0,160}(?:does not exist|not (?:found|available|supported|offered)) in\b"
        r"|(?:machinetypes|acceleratortypes)/[\w-]{1,60}'? (?:was|were) not found",
        then=row("next_zone", "zone+type", _VM_PAGE, hints={"permanent": True}),
    ),
    Rule(
        text=either(
            r"constraint constraints/\S{1,80} violated",
            r"could not automatically determine credentials",
            r"required '[\w.]+' permission",
            r"permission '?[\w.]+'? (?:denied|required)",
            r"does not have permission",
            r"has not been used in project .{0,40} before or it is disabled",
            r"requires billing to be enabled",
            r"billing account.{0,40}(?:disabled|closed)",
        ),
        then=row("fatal_auth", "project", _ERRORS_PAGE),
    ),
)
"""Texts that decide before the code does; in order."""
