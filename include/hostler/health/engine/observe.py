"""Takes looks into the memory (pure): what opens a fault, what is counted, and what closes it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from hostler.health.engine.events import apply_events
from hostler.health.engine.look import Look
from hostler.health.engine.memory import Done, Memory, Past, Session, bounded
from hostler.health.engine.rules import HARM, rule_of
from hostler.health.engine.sessions import bad_look, clears_now, good_look, is_good_look, new_session, strictest
from hostler.health.engine.silence import Silence, silence_over
from hostler.model.enums import HealthAction
from hostler.model.health import Finding

MOST_GAP_S: Final = 900.0
"""Longest time between two looks that counts as watched. Longer ones, and clocks that jump, count as this or as nothing."""


def observe(memory: Memory, looks: Iterable[Look], now: datetime, *, silences: Collection[Silence] = ()) -> Memory:
    """Returns the memory after the looks of one moment; their order and repetition do not matter.

    Args:
        now: the asker's aware time. It may jump: watched time goes on by at most ``MOST_GAP_S``, and never back.
        silences: maintenance that was announced; what is seen meanwhile opens faults but is not held against the node later.
    """
    notes = _Notes(silent=dict(memory.silent), unknown=dict(memory.unknown), taken=dict(memory.taken))
    memory = replace(memory, watched_s=memory.watched_s + _gap_s(memory, now), now=now.isoformat())
    for look in _in_order(memory, looks):
        memory = _take(memory, notes, look, _hushed(look, silences, now))
    memory = replace(
        memory,
        silent=tuple(sorted(notes.silent.items())),
        unknown=tuple(sorted((name, words) for name, words in notes.unknown.items() if words)),
        taken=tuple(sorted(notes.taken.items())),
    )
    return bounded(_close(memory))


@dataclass(slots=True, kw_only=True)
class _Notes:
    """The state of the streams themselves while looks are taken in."""

    silent: dict[str, int]
    unknown: dict[str, tuple[tuple[str, str], ...]]
    taken: dict[str, str]


def _hushed(look: Look, silences: Collection[Silence], now: datetime) -> frozenset[str]:
    if not silences:
        return frozenset()
    codes = {state.finding.code for state in look.states} | {event.finding.code for event in look.events}
    return frozenset(code for code in codes if silence_over(silences, code, now))


def note_remedy(memory: Memory, action: HealthAction, *, accelerator: str | None = None) -> Memory:
    """Returns the memory after something was done about faults: whether it helped is for the next looks to say.

    Args:
        accelerator: whose; None: the whole node's.
    """
    sessions = tuple(
        replace(one, remedy=action, bad_since_remedy=0, is_reset=one.is_reset or _resets(action, one.clears))
        if accelerator is None or one.accelerator in {accelerator, ""}
        else one
        for one in memory.sessions
    )
    return bounded(replace(memory, sessions=sessions, done=(*memory.done, Done(action=action, at_s=memory.watched_s))))


def _resets(action: HealthAction, clears: str) -> bool:
    return action is HealthAction.REBOOT_NODE or (action is HealthAction.RESET_GPU and clears == "reset")


def _gap_s(memory: Memory, now: datetime) -> float:
    if not memory.now:
        return 0.0
    return min(max((now - datetime.fromisoformat(memory.now)).total_seconds(), 0.0), MOST_GAP_S)


def _in_order(memory: Memory, looks: Iterable[Look]) -> list[Look]:
    """Older boots first, then by stream: the same order whatever order they came in; equal ones once."""
    several = list(looks)
    if len({look.stream for look in several}) == len(several) and len({look.boot_id for look in several}) == 1:
        return sorted(several, key=lambda look: look.stream)

    def place(look: Look) -> tuple[int, str, str, str]:
        known = memory.boots.index(look.boot_id) if look.boot_id in memory.boots else len(memory.boots)
        told = f"{look.is_answered} {sorted(look.seen)} {look.states} {look.events} {look.unknown} {look.taken_at}"
        return known, look.boot_id or "", look.stream, told

    return sorted(set(several), key=place)


def _take(memory: Memory, notes: _Notes, look: Look, hushed: Collection[str]) -> Memory:
    if look.taken_at and notes.taken.get(look.stream) == look.taken_at:
        return memory  # told twice
    if look.boot_id is not None and look.boot_id != memory.boot:
        if look.boot_id in memory.boots:
            return memory  # of a boot that is over
        memory = _new_boot(memory, look.boot_id)
    if look.taken_at:
        notes.taken[look.stream] = look.taken_at
    notes.silent[look.stream] = 0 if look.is_answered else notes.silent.get(look.stream, 0) + 1
    if not look.is_answered:
        return memory
    notes.unknown[look.stream] = look.unknown
    return _tally_states(apply_events(memory, look, hushed=hushed), look, hushed)


def _new_boot(memory: Memory, boot_id: str) -> Memory:
    """A boot resets devices and the log's clock; it clears nothing by itself. The first one that is told is no reboot."""
    sessions = memory.sessions
    if memory.boot is not None:
        sessions = tuple(replace(one, is_reset=True, last_uptime_s=None) for one in sessions)
    return replace(memory, boots=(*memory.boots, boot_id), marks=(), sessions=sessions)


def _tally_states(memory: Memory, look: Look, hushed: Collection[str]) -> Memory:
    if not look.states and not memory.sessions:
        return memory
    bad: dict[tuple[str, str], list[Finding]] = {}
    for entry in look.states:
        bad.setdefault((entry.accelerator, rule_of(entry.finding.code).cause), []).append(entry.finding)
    sessions = {one.key: one for one in memory.sessions}
    for key, findings in bad.items():
        known = sessions.get(key) or new_session(*key, memory.watched_s, memory.boot)
        is_hushed = known.is_silenced or any(finding.code in hushed for finding in findings)
        sessions[key] = replace(bad_look(known, findings, look.stream, memory.watched_s), is_silenced=is_hushed)
    missing = {name for name, _words in look.unknown}
    for key, session in sessions.items():
        if key not in bad and is_good_look(session, look, missing):
            sessions[key] = good_look(session, look.stream)
    return replace(memory, sessions=tuple(sorted(sessions.values(), key=lambda one: one.key)))


def _close(memory: Memory) -> Memory:
    """Takes out what is over; a fault that asked for harm stays in the lemon memory."""
    if not memory.sessions:
        return memory
    over = [one for one in memory.sessions if clears_now(one, memory.watched_s) is not None]
    if not over:
        return memory
    past = tuple(_past(one, memory.watched_s) for one in over if _is_remembered(one))
    left = tuple(one for one in memory.sessions if one not in over)
    return replace(memory, sessions=left, past=(*memory.past, *past))


def _is_remembered(session: Session) -> bool:
    worst = strictest(session.event, session.state)
    return session.is_loud and not session.is_silenced and worst is not None and worst.action.rank >= HARM.rank


def _past(session: Session, at_s: float) -> Past:
    worst = strictest(session.event, session.state)
    return Past(
        accelerator=session.accelerator,
        cause=session.cause,
        code=worst.code if worst else "",
        at_s=at_s,
        boot=session.boot,
        action=worst.action if worst else HealthAction.NONE,
        is_session=True,
    )
