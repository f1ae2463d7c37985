"""One fault's life: evidence, tallies, and its clear condition."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from hostler.health.engine.look import KERNEL_LOG, NODE, Look
from hostler.health.engine.memory import Session, Tally, cut
from hostler.health.engine.rules import WINDOW, FaultRule, hardest, rule_of
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding

QUIET_S: Final = 3600.0
"""Watched time without a new line that closes a fault whose clear condition is ``quiet``."""

MOST_BAD_TIMES: Final = 12
SEVERITY: Final = (Verdict.HEALTHY, Verdict.UNKNOWN, Verdict.DEGRADED, Verdict.FAILED)


def strictest(*findings: Finding | None) -> Finding | None:
    """Returns the finding that asks for most, by verdict, then rung; the same one in whatever order they come."""
    there = [finding for finding in findings if finding is not None]
    return max(there, key=_severity, default=None)


def _severity(finding: Finding) -> tuple[int, int, str, str, str]:
    return SEVERITY.index(finding.verdict), finding.action.rank, finding.code, finding.what, finding.evidence


def new_session(accelerator: str, cause: str, at_s: float, boot: str | None) -> Session:
    """Returns a fault without evidence yet."""
    return Session(accelerator=accelerator, cause=cause, opened_s=at_s, last_bad_s=at_s, boot=boot)


def with_rules(session: Session, codes: Collection[str]) -> Session:
    """Returns the session with the codes' rules: the hardest to clear, the easiest to say something."""
    rules = [rule_of(code) for code in sorted(codes)]
    known: list[FaultRule] = [rule_of(code) for code in session.codes]
    every = known + rules
    clears = "looks"
    for rule in every:
        clears = hardest(clears, rule.clears)
    return replace(
        session,
        codes=tuple(sorted({*session.codes, *codes})),
        clears=clears,
        good_looks=max(rule.good_looks for rule in every),
        samples=min(rule.samples for rule in every),
        proof=min(rule.proof for rule in every),
        at_idle=all(rule.at_idle for rule in every),
    )


def bad_look(session: Session, findings: Collection[Finding], stream: str, at_s: float) -> Session:
    """Returns the session after one look that shows it; what a look shows after a reset was not cured by it."""
    old = next((one for one in session.tallies if one.stream == stream), Tally(stream=stream))
    tally = Tally(
        stream=stream,
        recent=(old.recent + "1")[-WINDOW:],
        bad_run=old.bad_run + 1,
        bad_at_s=(*old.bad_at_s, at_s)[-MOST_BAD_TIMES:],
    )
    session = with_rules(session, {finding.code for finding in findings})
    is_loud = session.is_loud or tally.bad_run >= session.samples
    worst = strictest(session.state, *findings)
    return replace(
        session,
        tallies=_put(session.tallies, tally),
        state=None if worst is None else cut(worst),
        last_bad_s=at_s,
        is_loud=is_loud,
        is_proven=session.is_proven or (is_loud and tally.recent.count("1") >= session.proof),
        bad_since_remedy=session.bad_since_remedy + (session.remedy is not HealthAction.NONE),
        is_reset=False,
    )


def is_good_look(session: Session, look: Look, missing: Collection[str]) -> bool:
    """True when the look says that the fault is not there: it could have seen it, and did not."""
    if session.accelerator != NODE and session.accelerator not in look.seen:
        return False
    told = any(tally.stream == look.stream for tally in session.tallies)
    is_witness = session.is_reset and look.stream != KERNEL_LOG
    if not told and not is_witness:
        return False
    readings = {rule_of(code).reading for code in session.codes} - {""}
    return not any(f"{session.accelerator}/{reading}" in missing for reading in readings)


def good_look(session: Session, stream: str) -> Session:
    """Returns the session after one look that does not show it."""
    old = next((one for one in session.tallies if one.stream == stream), Tally(stream=stream))
    tally = replace(old, recent=(old.recent + "0")[-WINDOW:], good_run=old.good_run + 1, bad_run=0)
    return replace(session, tallies=_put(session.tallies, tally))


def _put(tallies: tuple[Tally, ...], tally: Tally) -> tuple[Tally, ...]:
    others = [one for one in tallies if one.stream != tally.stream]
    return tuple(sorted([*others, tally], key=lambda one: one.stream))


def clears_now(session: Session, at_s: float) -> str | None:
    """Returns why the fault is over, in words; None while it is not."""
    is_well = all(tally.good_run >= session.good_looks for tally in session.tallies)
    if not session.is_loud:
        return "it did not last" if session.tallies and is_well_once(session) else None
    if session.clears == "never" or not is_well:
        return None
    if session.clears == "looks":
        return f"{session.good_looks} looks without it" if session.tallies else None
    if session.clears == "quiet":
        return f"no more of it for {QUIET_S:.0f} s" if at_s - session.last_bad_s >= QUIET_S else None
    if session.is_reset and session.tallies:
        return f"a {session.clears} and {session.good_looks} looks without it"
    return None


def is_well_once(session: Session) -> bool:
    """True when the newest look of every stream that told of it is good."""
    return all(tally.good_run > 0 for tally in session.tallies)
