"""Finds the places and machine types that a text names: zones that refused, zones that would do, regions, instance types."""

import re
from typing import Final

from hostler.catalog.error_rules.lazy import Lazy
from hostler.catalog.error_rules.reading import Evidence
from hostler.catalog.error_rules.words import either

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
    "aws": rf"\b[a-z]{{2}}(?:-gov|-iso\w?)?-{_COMPASS}-\d(?=[a-z]?\b)",
    "gcp": r"(?<=region )[a-z]{2,20}-[a-z]{2,20}\d{1,2}\b|(?<=regions/)[a-z]{2,20}-[a-z]{2,20}\d{1,2}\b"
    r"|\b[a-z]{2,20}-[a-z]{2,20}\d{1,2}(?=-[a-z]\b)",
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
    Lazy(r"zonesavailable['\"]?: ?['\"\[]*([a-z0-9, '\"-]*?)(?=['\"\]]* ?,? ?(?:['\"]?[a-z_]+['\"]? ?:|[}\]]|$))"),
    Lazy(rf"{_ADVICE}:? ?['\"(\[]?((?:{_ANY_ZONE}['\"]?(?:, ?|,? and |,? or )?['\"]?)+)"),
    Lazy(r"supported zones? (?:for location '[^']{1,40}' )?(?:is|are):? '((?:\d(?:, ?)?){0,9})'"),
)
_FAILED_ZONE: Final = (
    Lazy(rf"(?:availability zone you requested|requested availability zone|availability zone)s? ?[:(]? ?['\"(]?({_ANY_ZONE})"),
    Lazy(rf"zones/({_ANY_ZONE})"),
    Lazy(rf"because ({_ANY_ZONE}), the targeted"),
    Lazy(rf"value \(({_ANY_ZONE})\) for parameter"),
    Lazy(r"\bzone(?:s|\(s\))? '(\d)' for resource"),
    Lazy(rf"(?:unavailable|exhausted|capacity) in (?:the )?(?:zone )?['\"]?({_ANY_ZONE})"),
    Lazy(rf"\bzone['\"]?:? ?['\"]?({_ANY_ZONE})"),
    Lazy(rf"\bin ({_ANY_ZONE})\b"),
    Lazy(r"in location '[^']{1,40}' zones? '([^']{1,20})'"),
)
_REGIONS: Final = Lazy(
    r"(?:available regions for the resource type (?:is|are)"
    r"|regions? with capacity(?: available)?:|(?:available|supported) regions?:)"
    r" ?['\"\[]{0,2}([a-z0-9-]{2,40}(?:['\"]?, ?['\"]?[a-z0-9-]{2,40}){0,60})"
)


def suggested_zones(text: str) -> tuple[str, ...] | None:
    """Returns the zones that a text advises, in its order; empty when it says that there are none; None when it is silent."""
    for pattern in _SUGGESTED:
        if found := pattern.search(text):
            return tuple(zone.lower() for zone in re.findall(rf"(?i)\b{_ANY_ZONE}|\b\d\b", found.group(1)))
    return None


def failed_zone(text: str, suggested: tuple[str, ...]) -> str:
    """Returns the zone that refused: the first that a text names so and does not advise; empty when it names none."""
    named = (found.lower() for pattern in _FAILED_ZONE for found in pattern.findall(text))
    return next((zone for zone in named if zone not in suggested), "")


def suggested_regions(text: str) -> list[str]:
    """Returns the regions that a text lists as good, in its order; empty when it lists none."""
    found = _REGIONS.search(text)
    return [name.strip(" '\"").lower() for name in found.group(1).split(",")] if found else []


def type_and_region(evidence: Evidence) -> dict[str, str]:
    """Returns the instance type and the region that the text names, as far as the cloud's spelling is known."""
    hints: dict[str, str] = {}
    cloud = evidence.cloud
    if (pattern := _TYPE.get(cloud)) and (kind := re.search(rf"(?i){pattern}", evidence.text)):
        hints["type"] = kind.group(0) if cloud == "azure" else kind.group(0).lower()
    if (pattern := _REGION.get(cloud)) and (region := re.search(rf"(?i){pattern}", evidence.full)):
        hints["region"] = region.group(0).lower().replace(" ", "")
    return hints
