"""SXid numbers of NVSwitch."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hostler.health.catalog.nvlink import link_of, says_fatal
from hostler.health.catalog.tables import rows
from hostler.model.enums import HealthAction, Verdict

_HEED_THE_LINE: Final = frozenset({"port_fatal", "reset_all", "thermal"})
"""Kinds whose table row is tempered by a line that calls itself non-fatal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SxidRule:
    """What an SXid means: kind as in the table, ``unknown`` for a number that it lacks; ``link`` None when none is named."""

    code: int
    kind: str
    action: HealthAction
    verdict: Verdict
    is_fatal: bool
    link: int | None
    words: str
    source: str


@lru_cache(maxsize=1)
def _table() -> dict[int, SxidRule]:
    table = {}
    for row in rows("sxids"):
        verdict = Verdict(row["verdict"])
        table[int(row["code"])] = SxidRule(
            code=int(row["code"]),
            kind=row["kind"],
            action=HealthAction(row["action"]),
            verdict=verdict,
            is_fatal=verdict is Verdict.FAILED,
            link=None,
            words=row["words"],
            source=f"{row['source']}, row {row['code']}",
        )
    return table


def sxids() -> tuple[SxidRule, ...]:
    """Returns every row, by number."""
    return tuple(_table().values())


def sxid(code: int, line: str = "") -> SxidRule:
    """Returns what an SXid means; the line's own Fatal or Non-fatal decides where the table leaves it open.

    Args:
        line: the whole kernel line; empty when only the number is known.
    """
    said = says_fatal(line)
    rule = _table().get(code)
    if rule is None:
        return _unknown(code, line, is_fatal=bool(said))
    if said is False and rule.kind in _HEED_THE_LINE:
        words = f"{rule.words}; the line itself says non-fatal: watch"
        return _changed(rule, HealthAction.RECORD, Verdict.DEGRADED, words, line)
    if said is True and rule.kind == "non_fatal":
        words = f"{rule.words}; but the line itself says fatal"
        return _changed(rule, HealthAction.DRAIN_AND_DIAG, Verdict.FAILED, words, line)
    return _changed(rule, rule.action, rule.verdict, rule.words, line)


def _changed(rule: SxidRule, action: HealthAction, verdict: Verdict, words: str, line: str) -> SxidRule:
    return SxidRule(
        code=rule.code,
        kind=rule.kind,
        action=action,
        verdict=verdict,
        is_fatal=verdict is Verdict.FAILED,
        link=link_of(line),
        words=words,
        source=rule.source,
    )


def _unknown(code: int, line: str, *, is_fatal: bool) -> SxidRule:
    return SxidRule(
        code=code,
        kind="unknown",
        action=HealthAction.DRAIN_AND_DIAG if is_fatal else HealthAction.RECORD,
        verdict=Verdict.FAILED if is_fatal else Verdict.DEGRADED,
        is_fatal=is_fatal,
        link=link_of(line),
        words="a number that the table does not have",
        source="ours: the line's own word where the table has none",
    )
