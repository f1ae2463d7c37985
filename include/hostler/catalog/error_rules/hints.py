"""Takes the facts out of a text that help the next step: zones, type, region, quota, prices, waiting times, deadlines."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from hostler.catalog.error_rules.reading import Evidence
from hostler.catalog.error_rules.times import TIME, utc
from hostler.catalog.error_rules.words import Meaning, either

Hints = dict[str, Any]

_ZONE: Final = {
    "aws": r"[a-z]{2}(?:-[a-z]{1,20}){1,3}-\d{1,2}(?:-[a-z]{1,6}-\d{1,2})?[a-z]\b",
    "gcp": r"[a-z]{2,20}(?:-[a-z]{1,20}){1,2}\d{1,2}-[a-z]\b",
}
_ANY_ZONE: Final = either(_ZONE["aws"], _ZONE["gcp"], r"cn-[a-z]{3,20}-[a-z]\b")
_GOOGLE_SHAPES: Final = either(
    "standard",
    "highmem",
    "highcpu",
    "highgpu",
    "megagpu",
    "ultragpu",
    "hightpu",
    "edgegpu",
    "micro",
    "small",
    "medium",
    "custom",
)
_COMPASS: Final = either("northeast", "northwest", "southeast", "southwest", "north", "south", "east", "west", "central")
_TYPE: Final = {
    "aws": r"\b(?:[a-z]{1,4}-?\d[a-z0-9-]{0,12})\.(?:\d{0,3}x?large|metal(?:-\w{1,8})?|nano|micro|small|medium)\b",
    "gcp": rf"\b[a-z]{{1,2}}\d{{1,2}}[a-z]{{0,2}}-{_GOOGLE_SHAPES}[\w-]{{0,30}}\b|\bv\d[a-z]{{0,2}}(?:litepod)?-\d{{1,4}}\b",
    "azure": r"\bstandard_[a-z]{1,4}\d\w{0,30}\b",
    "alibaba": r"\becs\.[\w-]{1,20}\.[\w-]{1,20}\b",
}
_REGION: Final = {
    "aws": rf"\b[a-z]{{2}}(?:-gov|-iso\w?)?-{_COMPASS}-\d\b",
    "gcp": r"(?<=region )[a-z]{2,20}-[a-z]{2,20}\d{1,2}\b|(?<=regions/)[a-z]{2,20}-[a-z]{2,20}\d{1,2}\b",
    "azure": r"(?<=location: )[a-z0-9]{1,30}|(?<=location ')[a-z0-9 ]{1,30}(?=')",
    "alibaba": r"(?<=ecs\.)(?:cn|ap|us|eu|me)-[a-z]{2,20}(?:-\d{1,2})?(?=\.aliyuncs)",
}
_ADVICE: Final = either(
    r"\bchoosing",
    r"\bchoose (?:from|one of)(?: these| the following)?(?: availability)?(?: zones?)?",
    r"\bfollowing (?:availability )?zones?",
    r"try(?:ing)? (?:your request |again )?in(?: the| one of)?(?: zones?)?",
    r"(?:suggested|alternative|available|other) zones?(?: are| is)?",
    r"only (?:available|supported|offered) in(?: the)?(?: zones?)?",
)
_SUGGESTED: Final = (
    re.compile(r"(?i)zonesavailable['\"]?: ?['\"\[]*([a-z0-9, '\"-]*?)(?=['\"\]]* ?,? ?(?:['\"]?[a-z_]+['\"]? ?:|[}\]]|$))"),
    re.compile(rf"(?i){_ADVICE}:? ?['\"(\[]?((?:{_ANY_ZONE}['\"]?(?:, ?|,? and |,? or )?['\"]?)+)"),
    re.compile(r"(?i)supported zones? (?:for location '[^']{1,40}' )?(?:is|are):? '((?:\d(?:, ?)?){0,9})'"),
)
_FAILED_ZONE: Final = (
    re.compile(
        rf"(?i)(?:availability zone you requested|requested availability zone|availability zone)s? ?[:(]? ?['\"(]?({_ANY_ZONE})"
    ),
    re.compile(rf"(?i)zones/({_ANY_ZONE})"),
    re.compile(rf"(?i)(?:unavailable|exhausted|capacity) in (?:the )?(?:zone )?['\"]?({_ANY_ZONE})"),
    re.compile(rf"(?i)\bzone['\"]?:? ?['\"]?({_ANY_ZONE})"),
    re.compile(rf"(?i)\bin ({_ANY_ZONE})\b"),
    re.compile(r"(?i)in location '[^']{1,40}' zones? '([^']{1,20})'"),
)
_NUMBER: Final = r"(\d{1,15}(?:\.\d{1,9})?)(?!\d)"
_LIMIT: Final = (
    re.compile(rf"(?i)current limit:? {_NUMBER}"),
    re.compile(rf"(?i)(?:limit|quota) of '?{_NUMBER}"),
    re.compile(rf"(?i)quota_limit_value['\"]?[,:]? ?(?:value: ?)?['\"]?{_NUMBER}"),
    re.compile(rf"(?i)\blimit['\"]?:? ?['\"]?{_NUMBER}"),
    re.compile(rf"(?i)limited by user quota ?\[?{_NUMBER}"),
    re.compile(rf"(?i)cannot create more than {_NUMBER}"),
    re.compile(rf"(?i)service limit '[^']{{1,120}}' is {_NUMBER}"),
    re.compile(rf"(?i)storage limit of {_NUMBER}"),
)
_USAGE: Final = (
    re.compile(rf"(?i)current usage:? {_NUMBER}"),
    re.compile(rf"(?i)currently has {_NUMBER}"),
    re.compile(rf"(?i)\busage:? {_NUMBER}"),
    re.compile(rf"(?i)current utilization of {_NUMBER}"),
)
_NEEDED: Final = (
    re.compile(rf"(?i)additional required:? {_NUMBER}"),
    re.compile(rf"(?i)requested at least {_NUMBER}"),
    re.compile(rf"(?i)requested(?: quota)?:? {_NUMBER}"),
    re.compile(rf"(?i)request delta of {_NUMBER}"),
    re.compile(rf"(?i)requested more instances \({_NUMBER}"),
    re.compile(rf"(?i)contains {_NUMBER} new"),
)
_REMAINING: Final = (
    re.compile(rf"(?i)remaining:? {_NUMBER}"),
    re.compile(rf"(?i)quota allows for {_NUMBER}"),
    re.compile(rf"(?i)left regional v?cpu quota {_NUMBER}"),
)
_QUOTA_NAME: Final = (
    re.compile(r"(?i)exceeding (?:the )?approved (.{1,60}?) quota"),
    re.compile(r"(?i)\bquota (?:limit )?'([\w .:/-]{1,80})'"),
    re.compile(r"(?i)service limit '([\w .:/-]{1,120})'"),
    re.compile(r"(?i)\bfor family (\w{1,60})"),
    re.compile(r"(?i)quota metric '([\w .:/-]{1,80})'"),
    re.compile(r"(?i)quota metrics exceed quota limits: ?([\w./-]{1,100})"),
    re.compile(r"(?i)\bquota ([a-z0-9]+(?:_[a-z0-9]+)+)\b"),
    re.compile(r"(?i)limitname['\"]?: ?['\"]?([\w-]{1,80})"),
)
_BID: Final = (
    re.compile(rf"(?i)(?:spot request|provided max(?:imum)?|max(?:imum)?) price (?:of )?['\"]?{_NUMBER}"),
    re.compile(rf"(?i)bid (?:price )?(?:of )?['\"]?{_NUMBER}"),
)
_PRICE: Final = (
    re.compile(rf"(?i)fulfillment price of ['\"]?{_NUMBER}"),
    re.compile(rf"(?i)current (?:azure )?spot (?:vm )?price (?:of )?['\"]?{_NUMBER}"),
)
_WAIT: Final = (
    re.compile(
        r"(?i)\b(?:retry|try|wait|again)\b[^.\d]{0,60}?\b(?:after|in|for|at least)?[^.\d\w]{0,4}(\d{1,6}(?:\.\d{1,3})?)['\"]? ?"
        r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b"
    ),
    re.compile(r"(?i)retry-?after(-ms)?['\"]?\s*[:=]\s*\[?['\"]?(\d{1,6}(?:\.\d{1,3})?)\b(?! ?\w{3} \d{4})"),
    re.compile(r"(?i)retry_?delay['\"]?\s*[:{]{0,2}\s*(?:seconds:)?\s*['\"]?(\d{1,6}(?:\.\d{1,9})?)()"),
)
_RETRY_AT: Final = re.compile(rf"(?i)retry-?after['\"]?\s*[:=]\s*['\"]?({TIME})")
_DEADLINE: Final = re.compile(
    rf"(?i)['\"]?(?:time|notbefore|termination-?time|windowstarttime|window_start_time|executetime|starttime)['\"]?\s*:\s*['\"]?({TIME})"
)
_REGIONS: Final = re.compile(r"(?i)available regions for the resource type (?:is|are) '([a-z0-9, ]{1,2000})'")
_DISK: Final = re.compile(r"(?i)resource type: ?((?:pd|hyperdisk|local)-[\w-]+)")
_RESOURCE_TYPE: Final = re.compile(r"(?i)resources? of type '?([\w./]{1,60})'?|resource type ([a-z]\w{3,40})$")
_ACCELERATOR: Final = re.compile(r"(?i)attachment['\"]?: ?['\"]?((?:nvidia|tpu|ct)[\w-]+)|(nvidia-[\w-]+) accelerator")
_INSTANCE: Final = re.compile(r"(?i)\b(i-[0-9a-f]{8,17}|i-[a-z0-9]{20})\b")
_VM: Final = re.compile(r"(?i)['\"]resources['\"] ?: ?\[ ?['\"]([^'\"]{1,80})['\"]")
_NO_TOKEN: Final = re.compile(r"(?i)(?:request|client) ?token['\"]?\s*[:=]\s*['\"]?(?:null|none|nil)\b")

_IN_SECONDS: Final = {"ms": 0.001, "m": 60.0, "s": 1.0, "h": 3600.0}
_SERVER_ERROR: Final = 500


def hints_of(evidence: Evidence, meaning: Meaning) -> Hints:
    """Returns the facts of a text that matter for what it means; the row's own facts come first and stay."""
    found: Hints = {}
    for take in _TAKEN.get(meaning.action, ()):
        found |= take(evidence, meaning)
    return found | dict(meaning.hints)


def suggested_zones(text: str) -> tuple[str, ...] | None:
    """Returns the zones that a text advises, in its order; empty when it says that there are none; None when it is silent."""
    for pattern in _SUGGESTED:
        if found := pattern.search(text):
            return tuple(zone.lower() for zone in re.findall(rf"(?i)\b{_ANY_ZONE}|\b\d\b", found.group(1)))
    return None


def _places(evidence: Evidence, _meaning: Meaning) -> Hints:
    hints: Hints = {}
    zones = suggested_zones(evidence.full)
    if zones is not None:
        hints["suggested_zones"] = list(zones)
    if failed := _first(_FAILED_ZONE, evidence.full):
        hints["failed_zone"] = failed.lower()
    if regions := _REGIONS.search(evidence.text):
        hints["suggested_regions"] = [name.strip().lower() for name in regions.group(1).split(",") if name.strip()]
    if disk := _DISK.search(evidence.text):
        hints["resource"] = disk.group(1).lower()
    if accelerator := _ACCELERATOR.search(evidence.text):
        hints["accelerator"] = (accelerator.group(1) or accelerator.group(2)).lower()
    return hints | _kind(evidence, _meaning)


def _kind(evidence: Evidence, _meaning: Meaning) -> Hints:
    hints: Hints = {}
    cloud = evidence.cloud
    if (pattern := _TYPE.get(cloud)) and (kind := re.search(rf"(?i){pattern}", evidence.text)):
        hints["type"] = kind.group(0) if cloud == "azure" else kind.group(0).lower()
    if (pattern := _REGION.get(cloud)) and (region := re.search(rf"(?i){pattern}", evidence.full)):
        hints["region"] = region.group(0).lower().replace(" ", "")
    return hints


def _quota(evidence: Evidence, meaning: Meaning) -> Hints:
    hints: Hints = {}
    for name, patterns in (("limit", _LIMIT), ("usage", _USAGE), ("needed", _NEEDED), ("remaining", _REMAINING)):
        if value := _first(patterns, evidence.text):
            hints[name] = _amount(value)
    if name := _first(_QUOTA_NAME, evidence.text):
        hints["quota"] = name
    if resource := _RESOURCE_TYPE.search(evidence.text):
        hints["resource"] = (resource.group(1) or resource.group(2)).rstrip(".")
    if unit := _unit(hints.get("quota", ""), evidence.text, meaning.unit):
        hints["unit"] = unit
    return hints | _kind(evidence, meaning)


def _unit(quota: str, text: str, unit: str) -> str:
    """Returns what a quota counts: told by its name, else by the text, else by the row."""
    name = quota.lower()
    for pattern, counted in (
        (r"gpus?\b|nvidia_", "GPU"),
        (r"tpu", "TPU core"),
        (r"cpus?\b|cores?\b", "vCPU"),
        (r"_gb\b|ssd|disk", "GB"),
        (r"address", "addresses"),
        (r"instances?\b", "instances"),
    ):
        if name and re.search(pattern, name.replace("_all_regions", "")):
            return counted
    return "vCPU" if re.search(r"(?i)\bv-?cpus?\b", text) else unit


def _prices(evidence: Evidence, meaning: Meaning) -> Hints:
    hints: Hints = {}
    for name, patterns in (("bid", _BID), ("needed", _PRICE)):
        if value := _first(patterns, evidence.text):
            hints[name] = float(value)
    return hints | _kind(evidence, meaning)


def _waiting(evidence: Evidence, _meaning: Meaning) -> Hints:
    hints: Hints = {}
    moment = _RETRY_AT.search(evidence.full)
    if moment and (at := utc(moment.group(1))):
        return {"retry_at": at}
    for index, pattern in enumerate(_WAIT):
        if found := pattern.search(evidence.full):
            value, unit = (
                (found.group(2), "ms" if found.group(1) else "s") if index == 1 else (found.group(1), found.group(2) or "s")
            )
            seconds = float(value) * _IN_SECONDS[_unit_key(unit.lower())]
            hints["retry_after_s"] = int(seconds) if seconds == int(seconds) else seconds
            break
    return hints


def _unit_key(unit: str) -> str:
    if unit.startswith(("ms", "milli")):
        return "ms"
    return unit[0]


def _reconcile(evidence: Evidence, _meaning: Meaning) -> Hints:
    """A create that was answered late or badly, or without a token, may have had its effect."""
    if evidence.effect != "create":
        return {}
    if _NO_TOKEN.search(evidence.text) or evidence.status >= _SERVER_ERROR or evidence.has_spent_retries:
        return {"reconcile_first": True}
    return {}


def _notice(evidence: Evidence, _meaning: Meaning) -> Hints:
    hints: Hints = {}
    bare = re.fullmatch(rf"(?i)['\"]?({TIME})['\"]?", evidence.text)
    moment = bare or _DEADLINE.search(evidence.text)
    if moment and (deadline := utc(moment.group(1))):
        hints["deadline"] = deadline
    if vm := _VM.search(evidence.text):
        hints["vm"] = vm.group(1)
    if instance := _INSTANCE.search(evidence.text):
        hints["instance"] = instance.group(1)
    if zone := _first(_FAILED_ZONE, evidence.full):
        hints["zone"] = zone.lower()
    return hints


def _cleanup(evidence: Evidence, _meaning: Meaning) -> Hints:
    """Whoever may create but not look has something running that nobody sees. Source: apache/airflow#60903."""
    return {"cleanup_created": True} if evidence.effect == "read" else {}


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> str:
    return next((found.group(1) for pattern in patterns if (found := pattern.search(text))), "")


def _amount(text: str) -> int | float:
    return float(text) if "." in text else int(text)


_Taker = Callable[[Evidence, Meaning], Hints]
_TAKEN: Final[Mapping[str, tuple[_Taker, ...]]] = {
    "next_zone": (_places, _prices),
    "next_region": (_places,),
    "next_instance_type": (_places,),
    "switch_capacity_type": (_prices,),
    "fatal_quota": (_quota,),
    "throttle_backoff": (_waiting, _reconcile),
    "retry_same_zone_later": (_waiting, _reconcile, _kind),
    "teardown_retry": (_waiting,),
    "fatal_auth": (_cleanup,),
    "fatal_config": (_kind,),
    "replace_node": (_notice,),
    "no_action": (_notice,),
}
"""Which facts matter for which action."""
