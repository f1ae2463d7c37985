"""Errors of DCGM by name or number."""

from dataclasses import dataclass
from functools import lru_cache

from hostler.health.catalog.tables import rows
from hostler.model.enums import HealthAction, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmRule:
    """What an error of DCGM means.

    Attributes:
        name: such as ``DCGM_FR_NVLINK_DOWN``. number: None when not known.
        nvsentinel_action: the word of NVSentinel's own map. kind: hardware, thermal, performance, fabric, config, watch, or
            ``test``: the test itself did not run. A failed ``performance`` test is repeated once, alone, before harm.
    """

    name: str
    number: int | None
    nvsentinel_action: str
    kind: str
    action: HealthAction
    verdict: Verdict
    words: str
    source: str


@lru_cache(maxsize=1)
def _table() -> dict[str, DcgmRule]:
    return {
        row["name"]: DcgmRule(
            name=row["name"],
            number=int(row["number"]) if row["number"] else None,
            nvsentinel_action=row["nvsentinel_action"],
            kind=row["kind"],
            action=HealthAction(row["action"]),
            verdict=Verdict(row["verdict"]),
            words=row["words"] or row["name"].removeprefix("DCGM_FR_").replace("_", " ").lower(),
            source=f"{row['source']}, row {row['name']}",
        )
        for row in rows("dcgm_errors")
    }


@lru_cache(maxsize=1)
def _numbers() -> dict[int, DcgmRule]:
    numbers: dict[int, DcgmRule] = {}
    for rule in _table().values():
        # Two names share a number where DCGM renamed one: the stricter row answers for the bare number.
        if rule.number is not None and (rule.number not in numbers or rule.action.rank > numbers[rule.number].action.rank):
            numbers[rule.number] = rule
    return numbers


def dcgm_errors() -> tuple[DcgmRule, ...]:
    """Returns every row in the table's order."""
    return tuple(_table().values())


def dcgm_error(error: str | int) -> DcgmRule:
    """Returns the row of an error by its name (with or without ``DCGM_FR_``) or number; one not known asks for a diagnosis."""
    if isinstance(error, int):
        found = _numbers().get(error)
    else:
        name = error.strip().upper()
        found = _table().get(name) or _table().get(f"DCGM_FR_{name}")
    return found or DcgmRule(
        name=str(error),
        number=error if isinstance(error, int) else None,
        nvsentinel_action="",
        kind="unknown",
        action=HealthAction.DRAIN_AND_DIAG,
        verdict=Verdict.FAILED,
        words="an error that the table does not have",
        source="ours: what is not known is not ignored",
    )
