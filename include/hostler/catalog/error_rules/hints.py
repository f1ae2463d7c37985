"""Takes the facts out of a text that help the next step: quota, prices, waiting times, deadlines; places come from ``places``."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from hostler.catalog.error_rules.lazy import Lazy
from hostler.catalog.error_rules.places import failed_zone, suggested_regions, suggested_zones, type_and_region
from hostler.catalog.error_rules.reading import Evidence
from hostler.catalog.error_rules.times import TIME, utc
from hostler.catalog.error_rules.words import Meaning

Hints = dict[str, Any]

_NUMBER: Final = r"(\d{1,15}(?:\.\d{1,9})?)(?!\d)"
_LIMIT: Final = (
    Lazy(rf"current limit:? {_NUMBER}"),
    Lazy(rf"(?:limit|quota) of '?{_NUMBER}"),
    Lazy(rf"quota_limit_value['\"]?[,:]? ?(?:value: ?)?['\"]?{_NUMBER}"),
    Lazy(rf"\blimit['\"]?:? ?['\"]?{_NUMBER}"),
    Lazy(rf"limited by user quota ?\[?{_NUMBER}"),
    Lazy(rf"cannot create more than {_NUMBER}"),
    Lazy(rf"service limit '[^']{{1,120}}' is {_NUMBER}"),
    Lazy(rf"storage limit of {_NUMBER}"),
)
_USAGE: Final = (
    Lazy(rf"current usage:? {_NUMBER}"),
    Lazy(rf"currently has {_NUMBER}"),
    Lazy(rf"\busage:? {_NUMBER}"),
    Lazy(rf"current utilization of {_NUMBER}"),
)
_NEEDED: Final = (
    Lazy(rf"additional required:? {_NUMBER}"),
    Lazy(rf"requested at least {_NUMBER}"),
    Lazy(rf"requested(?: quota)?:? {_NUMBER}"),
    Lazy(rf"request delta of {_NUMBER}"),
    Lazy(rf"requested more instances \({_NUMBER}"),
    Lazy(rf"contains {_NUMBER} new"),
)
_REMAINING: Final = (
    Lazy(rf"remaining:? {_NUMBER}"),
    Lazy(rf"quota allows for {_NUMBER}"),
    Lazy(rf"left regional v?cpu quota {_NUMBER}"),
)
_QUOTA_NAME: Final = (
    Lazy(r"exceeding (?:the )?approved (.{1,60}?) quota"),
    Lazy(r"\bquota (?:limit )?'([\w .:/-]{1,80})'"),
    Lazy(r"service limit '([\w .:/-]{1,120})'"),
    Lazy(r"\bfor family (\w{1,60})"),
    Lazy(r"quota metric '([\w .:/-]{1,80})'"),
    Lazy(r"quota metrics exceed quota limits: ?([\w./-]{1,100})"),
    Lazy(r"\bquota ([a-z0-9]+(?:_[a-z0-9]+)+)\b"),
    Lazy(r"limitname['\"]?: ?['\"]?([\w-]{1,80})"),
)
_BID: Final = (
    Lazy(rf"(?:spot request|provided max(?:imum)?|max(?:imum)?) price (?:of )?['\"]?{_NUMBER}"),
    Lazy(rf"bid (?:price )?(?:of )?['\"]?{_NUMBER}"),
)
_PRICE: Final = (
    Lazy(rf"fulfillment price of ['\"]?{_NUMBER}"),
    Lazy(rf"current (?:azure )?spot (?:vm )?price (?:of )?['\"]?{_NUMBER}"),
)
_WAIT: Final = (
    Lazy(
        r"\b(?:retry|try|wait|again)\b[^.\d]{0,60}?\b(?:after|in|for|at least)?[^.\d\w]{0,4}(\d{1,6}(?:\.\d{1,3})?)['\"]? ?"
        r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b"
    ),
    Lazy(r"retry-?after(-ms)?['\"]?\s*[:=]\s*\[?['\"]?(\d{1,6}(?:\.\d{1,3})?)\b(?! ?\w{3} \d{4})"),
    Lazy(r"retry_?delay['\"]?\s*[:{]{0,2}\s*(?:seconds:)?\s*['\"]?(\d{1,6}(?:\.\d{1,9})?)()"),
)
_RETRY_AT: Final = Lazy(rf"retry-?after['\"]?\s*[:=]\s*['\"]?({TIME})")
_DEADLINE: Final = Lazy(
    rf"['\"]?(?:time|notbefore|termination-?time|windowstarttime|window_start_time|executetime|starttime)['\"]?\s*:\s*['\"]?({TIME})"
)
_SAID_TIME: Final = Lazy(rf"\b(?:at|by|before|after|on) ({TIME})")
_DISK: Final = Lazy(r"resource type: ?((?:pd|hyperdisk|local)-[\w-]+)")
_RESOURCE_TYPE: Final = Lazy(r"resources? of type '?([\w./]{1,60})'?|resource type ([a-z]\w{3,40})$")
_ACCELERATOR: Final = Lazy(r"attachment['\"]?: ?['\"]?((?:nvidia|tpu|ct)[\w-]+)|(nvidia-[\w-]+) accelerator")
_INSTANCE: Final = Lazy(r"\b(i-[0-9a-f]{8,17}|i-[a-z0-9]{20})\b")
_VM: Final = Lazy(r"['\"]resources['\"] ?: ?\[ ?['\"]([^'\"]{1,80})['\"]")
_NO_TOKEN: Final = Lazy(r"(?:request|client) ?token['\"]?\s*[:=]\s*['\"]?(?:null|none|nil)\b")

_IN_SECONDS: Final = {"ms": 0.001, "m": 60.0, "s": 1.0, "h": 3600.0}
_SERVER_ERROR: Final = 500


def hints_of(evidence: Evidence, meaning: Meaning) -> Hints:
    """Returns the facts of a text that matter for what it means; the row's own facts come first and stay."""
    found: Hints = {}
    for take in _TAKEN.get(meaning.action, ()):
        found |= take(evidence, meaning)
    return found | dict(meaning.hints)


def _places(evidence: Evidence, _meaning: Meaning) -> Hints:
    hints: Hints = {}
    zones = suggested_zones(evidence.full)
    if zones is not None:
        hints["suggested_zones"] = list(zones)
    if failed := failed_zone(evidence.full, zones or ()):
        hints["failed_zone"] = failed
    if regions := suggested_regions(evidence.text):
        hints["suggested_regions"] = regions
    if disk := _DISK.search(evidence.text):
        hints["resource"] = disk.group(1).lower()
    if accelerator := _ACCELERATOR.search(evidence.text):
        hints["accelerator"] = (accelerator.group(1) or accelerator.group(2)).lower()
    return hints | type_and_region(evidence)


def _kind(evidence: Evidence, _meaning: Meaning) -> Hints:
    return type_and_region(evidence)


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
    return hints | type_and_region(evidence)


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


def _prices(evidence: Evidence, _meaning: Meaning) -> Hints:
    hints: Hints = {}
    for name, patterns in (("bid", _BID), ("needed", _PRICE)):
        if value := _first(patterns, evidence.text):
            hints[name] = float(value)
    return hints | type_and_region(evidence)


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
    moment = bare or _DEADLINE.search(evidence.text) or _SAID_TIME.search(evidence.text)
    if moment and (deadline := utc(moment.group(1))):
        hints["deadline"] = deadline
    if vm := _VM.search(evidence.text):
        hints["vm"] = vm.group(1)
    if instance := _INSTANCE.search(evidence.text):
        hints["instance"] = instance.group(1)
    if zone := failed_zone(evidence.full, ()):
        hints["zone"] = zone
    return hints


def _cleanup(evidence: Evidence, _meaning: Meaning) -> Hints:
    """Whoever may create but not look has something running that nobody sees. Source: apache/airflow#60903."""
    return {"cleanup_created": True} if evidence.effect == "read" else {}


def _first(patterns: tuple[Lazy, ...], text: str) -> str:
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
