"""Decides what an answer means whose code, text and status the SDK has taken apart: the way of a driver.

The same tables as for texts; more careful where nothing but words would decide, since a driver acts on it.
"""

from typing import Final

from hostler.catalog.error_rules import shape, texts
from hostler.catalog.error_rules.reading import Evidence, flatten
from hostler.catalog.error_rules.ruling import Basis, by_family, by_status, first, for_effect, of_codes
from hostler.catalog.error_rules.tables import TABLES, Table
from hostler.catalog.error_rules.words import Effect, Meaning
from hostler.cloud.errors import (
    CloudAuthError,
    CloudError,
    CloudThrottledError,
    InsufficientCapacityError,
    QuotaExceededError,
    Scope,
    SpotUnavailableError,
)

_BY_TEXT: Final[frozenset[type[CloudError] | None]] = frozenset(
    {CloudThrottledError, CloudAuthError, QuotaExceededError, InsufficientCapacityError, SpotUnavailableError}
)
"""What words alone may say to a driver. Not "gone", "ours" or "wrong order": those need a code."""

_SCOPES: Final[dict[str, Scope]] = {"next_zone": "zone", "next_region": "region", "next_instance_type": "type"}


def answered(cloud: str, *, code: str, text: str, status: int, effect: Effect) -> tuple[Meaning, Basis]:
    """Returns what an answer of a cloud with a table means, and what decided; the meaning always has an error.

    Args:
        code: as the cloud gave it; empty when it gave none. status: of HTTP; 0 when there was none.
    """
    flat = flatten(text)
    evidence = Evidence(
        cloud=cloud, call="", effect=effect, text=flat, full=flat, codes=(code,) if code else (), tokens=(), status=status
    )
    meaning, basis = _raw(evidence, code)
    return for_effect(meaning, effect), basis


def _raw(evidence: Evidence, code: str) -> tuple[Meaning, Basis]:
    table = TABLES[evidence.cloud]
    if opening := first(table.opening, evidence):
        return opening, "code"
    if listed := _listed(table, evidence):
        return listed, "code"
    if family := by_family((code,)):
        return family, "family"
    if shape.WRONG_FAMILY.search(code):
        return shape.WRONG, "family"
    said = first(shape.FIRST, evidence) or first(table.rules, evidence) or first(texts.TEXTS, evidence)
    if said and said.error in _BY_TEXT:
        return said, "text"
    return by_status(evidence.status, evidence.effect, is_403_auth=table.is_403_auth), "status"


def _listed(table: Table, evidence: Evidence) -> Meaning | None:
    """Returns what the table says of the code; a text may say more where the code is a generic one."""
    listed = of_codes(table, evidence, weak=False)
    if listed is None and (listed := of_codes(table, evidence, weak=True)):
        listed = first(table.rules, evidence) or listed
    return listed if listed and listed.error else None


def avoided(meaning: Meaning) -> Scope:
    """Returns what to avoid after a lack of capacity, in the port's words."""
    return _SCOPES.get(meaning.action, "zone")
