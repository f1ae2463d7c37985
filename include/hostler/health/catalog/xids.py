"""Xid numbers: NVIDIA's row, and what one line means in its context."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from hostler.health.catalog.nvlink import CLEANUP_XID, NVLINK4_XID, NVLINK5_XIDS, Decoded, decode_74, decode_144_150
from hostler.health.catalog.recovery import RECOVERY_XID, recovery, recovery_in
from hostler.health.catalog.tables import Row, rows
from hostler.model.enums import HealthAction, Verdict

DOUBLE_BIT_XID: Final = 48
REMAPS: Final = frozenset({63, 64})
_CAUSE = re.compile(r"caused by previous Xid (\d+)", re.IGNORECASE)

SERIOUS: Final = HealthAction.RESET_GPU
"""From this rung on a finding asks for more than the program's own restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XidContext:
    """What else is known when a line is judged.

    Attributes:
        line: the whole kernel line; empty when only the number is known.
        companions: other Xids of the same GPU and burst. driver_major: such as 580; None when not known.
    """

    line: str = ""
    companions: frozenset[int] = frozenset()
    driver_major: int | None = None


def cause_in(line: str) -> int | None:
    """Returns the Xid that the line itself names as its cause; None when it names none."""
    found = _CAUSE.search(line)
    return int(found.group(1)) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """So many separate bursts on one GPU within ``window_s`` seconds ask for ``action``."""

    count: int
    window_s: float
    action: HealthAction


@dataclass(frozen=True, slots=True, kw_only=True)
class XidRule:
    """What an Xid means.

    Attributes:
        nvidia_immediate, nvidia_investigatory: the catalogue's buckets, unchanged; empty where it has none.
        nvidia_action: the immediate action after its work-flow was followed, such as ``RESTART_FM`` or ``DRAIN_AND_RESET``.
        fault_class: app, driver, hw-soft, hw-hard, fabric, info, unused or unknown. boards: the catalogue's columns with YES.
        action: our rung. verdict: what one such line makes of the GPU in this boot.
        is_fatal: work on the GPU cannot go on. is_follow_up: the fault is another one; never counted by itself.
        repeat: None when repeats ask for nothing more. link, sub_code: of an NVLink line.
        words: for a person. source: of the row that decided.
    """

    code: int
    mnemonic: str
    meaning: str
    nvidia_immediate: str
    nvidia_investigatory: str
    nvidia_action: str
    fault_class: str
    boards: tuple[str, ...]
    action: HealthAction
    verdict: Verdict
    is_fatal: bool
    words: str
    source: str
    read_on: str
    is_follow_up: bool = False
    repeat: Repeat | None = None
    link: int | None = None
    sub_code: int | None = None


@lru_cache(maxsize=1)
def _table() -> dict[int, XidRule]:
    return {int(row["code"]): _rule(row) for row in rows("xids")}


def _rule(row: Row) -> XidRule:
    action = HealthAction(row["action"])
    repeat = None
    if row["repeat_count"]:
        again = HealthAction(row["repeat_action"])
        repeat = Repeat(count=int(row["repeat_count"]), window_s=float(row["repeat_window_s"]), action=again)
    return XidRule(
        code=int(row["code"]),
        mnemonic=row["mnemonic"],
        meaning=row["meaning"],
        nvidia_immediate=row["nvidia_immediate"],
        nvidia_investigatory=row["nvidia_investigatory"],
        nvidia_action=row["nvidia_immediate"],
        fault_class=row["fault_class"],
        boards=tuple(filter(None, row["boards"].split(";"))),
        action=action,
        verdict=Verdict(row["verdict"]),
        is_fatal=Verdict(row["verdict"]) is Verdict.FAILED,
        words=row["words"] or row["meaning"],
        source=f"{row['source']}, row {row['code']}",
        read_on=row["read_on"],
        repeat=repeat,
    )


def xids() -> tuple[XidRule, ...]:
    """Returns every row of the catalogue, by number, as if its line said nothing more."""
    return tuple(_table().values())


def xid(code: int, context: XidContext | None = None) -> XidRule:
    """Returns what an Xid means in its context. A number that the catalogue lacks is recorded and seen, never ignored."""
    rule = _table().get(code)
    if rule is None:
        return _unknown(code)
    return rule if context is None else _in_context(rule, context)


@lru_cache(maxsize=4096)
def _in_context(rule: XidRule, context: XidContext) -> XidRule:
    cause = cause_in(context.line)
    if cause is not None and cause != rule.code:
        return _follow_up(rule, cause)
    found = rule
    if rule.code == RECOVERY_XID:
        found = _recovery(rule, context)
    elif rule.code in NVLINK5_XIDS and context.line:
        found = _unit(rule, decode_144_150(rule.code, context.line, context.driver_major))
    elif rule.code == NVLINK4_XID and context.line:
        found = _decoded(rule, decode_74(context.line, context.companions - {CLEANUP_XID}))
    elif rule.code == CLEANUP_XID:
        found = _cleanup(rule, context)
    elif rule.code == DOUBLE_BIT_XID:
        found = _double_bit(rule, context)
    return found


def _unknown(code: int) -> XidRule:
    return XidRule(
        code=code,
        mnemonic="",
        meaning="a number that the catalogue does not have",
        nvidia_immediate="",
        nvidia_investigatory="",
        nvidia_action="",
        fault_class="unknown",
        boards=(),
        action=HealthAction.RECORD,
        verdict=Verdict.DEGRADED,
        is_fatal=False,
        words="not in the catalogue: a newer driver than it, or a broken line",
        source="ours: what is not known is not ignored",
        read_on="2026-12-01",
    )


def _recovery(rule: XidRule, context: XidContext) -> XidRule:
    spelled = recovery_in(context.line)
    if spelled is None:
        return rule
    found = recovery(spelled)
    return replace(
        rule,
        nvidia_action=found.nvidia_action,
        action=found.action,
        verdict=found.verdict,
        is_fatal=found.verdict is Verdict.FAILED,
        words=f"the driver asks for {spelled}",
        source=found.source,
    )


def _decoded(rule: XidRule, found: Decoded) -> XidRule:
    is_serious = found.action.rank >= SERIOUS.rank
    repeat = None
    if rule.repeat is not None and found.repeat_action.rank > found.action.rank:
        repeat = replace(rule.repeat, action=found.repeat_action)
    return replace(
        rule,
        nvidia_action=found.nvidia_action or rule.nvidia_immediate,
        action=found.action,
        verdict=Verdict.FAILED if is_serious else Verdict.HEALTHY,
        is_fatal=is_serious,
        words=found.words,
        source=found.source,
        repeat=repeat,
        link=found.link,
        sub_code=found.sub_code,
    )


def _unit(rule: XidRule, found: Decoded) -> XidRule:
    """A decoded line is as fatal as its row says; one that cannot be decoded is failed only when it calls itself fatal."""
    decided = _decoded(rule, found)
    if found.nvidia_action:
        return replace(decided, is_fatal=bool(found.is_fatal))
    is_fatal = bool(found.is_fatal)
    return replace(decided, verdict=Verdict.FAILED if is_fatal else Verdict.DEGRADED, is_fatal=is_fatal)


def _follow_up(rule: XidRule, cause: int) -> XidRule:
    """The fault is the one that came before: it is judged by its own line."""
    words = f"a follow-up of Xid {cause}"
    follow = replace(rule, nvidia_action="IGNORE", action=HealthAction.NONE, is_follow_up=True, words=words, repeat=None)
    return replace(follow, verdict=Verdict.HEALTHY, is_fatal=False)


def _cleanup(rule: XidRule, context: XidContext) -> XidRule:
    """Work-flow 45: with another Xid it is a follow-up; alone, the fabric manager is restarted."""
    others = context.companions - {CLEANUP_XID}
    if others:
        return _follow_up(rule, min(others))
    return replace(rule, nvidia_action="RESTART_FM", action=HealthAction.RESTART_SERVICE)


def _double_bit(rule: XidRule, context: XidContext) -> XidRule:
    """Work-flow 48: alone the GPU is reset; with a row remap its programs end first, then it is reset."""
    if context.companions & REMAPS:
        return replace(
            rule, nvidia_action="DRAIN_AND_RESET", words="uncorrectable ECC error with a row remap: drain, then reset"
        )
    return replace(rule, nvidia_action="RESET_GPU")
