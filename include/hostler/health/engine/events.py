"""Lines into faults: each line counts once, a burst of them once, and a follow-up not at all."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from hostler.health.engine.look import Event, Look
from hostler.health.engine.memory import Mark, Memory, Past, Session, cut
from hostler.health.engine.rules import rule_of
from hostler.health.engine.sessions import new_session, strictest, with_rules
from hostler.model.enums import HealthAction, Verdict

BURST_S: Final = 180.0
"""Lines of one number on one GPU that follow each other within it are one burst. Source: NVIDIA/NVSentinel, analyzer."""

PROOF_BURSTS: Final = 2
MMU_FAULT: Final = "xid.31"
SHADER_FAULT: Final = "xid.13"


@dataclass(slots=True)
class _Reading:
    """The memory while events are taken in."""

    memory: Memory
    stream: str
    sessions: dict[tuple[str, str], Session]
    marks: dict[tuple[str, str], Mark]
    past: list[Past]


def apply_events(memory: Memory, look: Look, *, hushed: Collection[str]) -> Memory:
    """Returns the memory after the look's new events; ``hushed``: codes under a silence, which are not held against the node."""
    if not look.events:
        return memory
    reading = _Reading(
        memory=memory,
        stream=look.stream,
        sessions={one.key: one for one in memory.sessions},
        marks={(mark.accelerator, mark.code): mark for mark in memory.marks},
        past=list(memory.past),
    )
    for event, count, is_burst in _new_events(reading, look.events):
        _take(reading, event, count, is_burst=is_burst, is_hushed=event.finding.code in hushed)
    return replace(
        memory,
        sessions=tuple(sorted(reading.sessions.values(), key=lambda one: one.key)),
        marks=tuple(sorted(reading.marks.values(), key=lambda mark: (mark.burst_at_s, mark.accelerator, mark.code))),
        past=tuple(reading.past),
    )


def _new_events(reading: _Reading, events: Iterable[Event]) -> list[tuple[Event, int, bool]]:
    """Returns (event, how many lines it stands for, is it a new burst) for what was not read before, in the log's order."""
    found: list[tuple[Event, int, bool]] = []
    groups: dict[tuple[str, str], list[Event]] = {}
    for event in sorted(set(events), key=_place):
        groups.setdefault((event.accelerator, event.finding.code), []).append(event)
    for key, group in groups.items():
        found += _new_of(reading, key, group)
    return sorted(found, key=lambda entry: _place(entry[0]))


def _place(event: Event) -> tuple[float, str, str, str]:
    uptime = float("inf") if event.at_uptime_s is None else event.at_uptime_s
    return uptime, event.accelerator, event.finding.code, event.line + event.finding.what


def _new_of(reading: _Reading, key: tuple[str, str], group: list[Event]) -> list[tuple[Event, int, bool]]:
    now_s = reading.memory.watched_s
    mark = reading.marks.get(key)
    last, burst_at_s = (mark.uptime_s, mark.burst_at_s) if mark else (None, float("-inf"))
    found: list[tuple[Event, int, bool]] = []
    for event in group:
        at = event.at_uptime_s
        if at is None or (last is not None and at <= last):
            continue
        is_burst = last is None or at - last > BURST_S
        last = at
        found.append((event, 1, is_burst))
    loose = [event for event in group if event.at_uptime_s is None]
    before = mark.unstamped if mark else 0
    if len(loose) > before:
        is_burst = now_s - burst_at_s > BURST_S
        found.append((loose[-1], len(loose) - before, is_burst))
    if found:
        burst_at_s = now_s
    reading.marks[key] = Mark(
        accelerator=key[0],
        code=key[1],
        uptime_s=last,
        unstamped=max(len(loose), before),
        burst_at_s=burst_at_s if found or mark else now_s,
    )
    return found


def _take(reading: _Reading, event: Event, count: int, *, is_burst: bool, is_hushed: bool) -> None:
    if event.is_recovery:
        _recover(reading, event)
    if event.is_follow_up or (event.finding.verdict is Verdict.HEALTHY and event.finding.action is HealthAction.NONE):
        return
    cause = rule_of(event.finding.code).cause
    key = (event.accelerator, cause)
    at_s = reading.memory.watched_s
    session = reading.sessions.get(key) or new_session(event.accelerator, cause, at_s, reading.memory.boot)
    is_fatal = event.finding.verdict is Verdict.FAILED
    is_same = is_fatal and session.event is not None and not session.is_reset and event.finding.code in session.codes
    if is_burst and not is_same and not is_hushed:
        reading.past.append(_burst(event, cause, at_s, reading.memory.boot))
    session = with_rules(session, {event.finding.code})
    bursts = session.burst_count + (is_burst and is_fatal)
    worst = strictest(session.event, event.finding)
    reading.sessions[key] = replace(
        session,
        event=None if worst is None else cut(worst),
        event_stream=reading.stream,
        burst_count=bursts,
        line_count=session.line_count + count,
        last_uptime_s=event.at_uptime_s if event.at_uptime_s is not None else session.last_uptime_s,
        last_bad_s=at_s,
        repeat_action=max(session.repeat_action, _repeats(reading, event), key=lambda action: action.rank),
        is_loud=True,
        is_proven=session.is_proven or bursts >= PROOF_BURSTS,
        is_reset=False,
        is_silenced=session.is_silenced or is_hushed,
        bad_since_remedy=session.bad_since_remedy + (session.remedy is not HealthAction.NONE),
        tallies=tuple(replace(tally, good_run=0) for tally in session.tallies),
    )


def _burst(event: Event, cause: str, at_s: float, boot: str | None) -> Past:
    code = event.finding.code
    return Past(accelerator=event.accelerator, cause=cause, code=code, at_s=at_s, boot=boot, unit=event.unit, pid=event.pid)


def _recover(reading: _Reading, event: Event) -> None:
    """The driver's own word goes over what the lines before it ask for on that GPU; ``None`` counts as a reset."""
    for key, session in list(reading.sessions.items()):
        is_before = session.last_uptime_s is None or event.at_uptime_s is None or session.last_uptime_s <= event.at_uptime_s
        if session.accelerator != event.accelerator or session.event is None or not is_before:
            continue
        if event.finding.action is HealthAction.NONE:
            reading.sessions[key] = replace(session, is_reset=True)
        elif session.state is None:
            del reading.sessions[key]
        else:
            reading.sessions[key] = replace(session, event=None, event_stream="")


def _repeats(reading: _Reading, event: Event) -> HealthAction:
    """Returns the rung that the repeats of this line's number ask for on this GPU; none when there are too few."""
    rule = event.repeat
    if rule is None:
        return HealthAction.NONE
    since_s = reading.memory.watched_s - rule.window_s
    bursts = [past for past in reading.past if past.code == event.finding.code and not past.is_session and past.at_s >= since_s]
    mine = [past for past in bursts if past.accelerator == event.accelerator and past.unit == event.unit]
    if event.finding.code == SHADER_FAULT and not event.unit:
        return HealthAction.NONE  # without the unit it cannot be told from a program that fails anywhere
    if event.finding.code == MMU_FAULT:
        others = any(past.accelerator != event.accelerator for past in bursts)
        programs = {past.pid for past in mine}
        return HealthAction.NONE if others or len(programs) < rule.count else rule.action
    return rule.action if len(mine) >= rule.count else HealthAction.NONE
