"""The verdict that a memory adds up to, the rung that is asked for, and why (pure)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hostler.health.catalog import LIMITS
from hostler.health.engine.look import NODE
from hostler.health.engine.memory import Memory, Session
from hostler.health.engine.rules import HARM, next_rung
from hostler.health.engine.sessions import strictest
from hostler.health.engine.silence import Silence, silence_over
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding

LEMON_S: Final = 7 * 86_400.0
"""Within it a fault that comes back is the same lemon. Source: NVIDIA/NVSentinel, remediations of a node in 7 days."""

MOST_REMEDIES: Final = 5
"""So many remedies within ``LEMON_S`` and the node is replaced. Source: as above."""

HANG_LOOKS: Final = 5
"""So many looks without an answer in a row, while another source of the node answers, prove that the driver hangs."""

SILENT_LOOKS: Final = 3
"""So many looks without an answer in a row bear out a fatal line of another source."""

WITNESSES: Final = frozenset({"recovery", "job", "test"})
"""Causes that bear witness for others: the driver's word, a job that died, a diagnosis."""

TWO: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault as it stands.

    Attributes:
        finding: the strictest; its ``source`` is the document that says so. wanted: the rung it asks for once proven.
        action: the rung it may ask for now. seen_by: the sources. proof: in words; empty while it is not proven.
        climbed: why it asks for more than its row says, in words; empty when it does not. clears: what would end it.
    """

    accelerator: str
    cause: str
    finding: Finding
    wanted: HealthAction
    action: HealthAction
    seen_by: tuple[str, ...]
    proof: str
    climbed: str
    clears: str
    at_idle: bool
    line_count: int
    age_s: float
    silence: Silence | None

    @property
    def is_proven(self) -> bool:
        """True when two sources, or enough looks, bear it out."""
        return bool(self.proof)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Verdict and action on a node now.

    Attributes:
        action: highest rung of what is proven. at_idle: it waits until no job runs. wants_test: a diagnosis, alone, would
            settle a fault that only one source tells of.
        is_confirmed: False when the verdict is failed by something that is not proven yet.
        faults: the worst first. unknown: what could not be read, in words.
    """

    verdict: Verdict
    action: HealthAction
    at_idle: bool
    wants_test: bool
    is_confirmed: bool
    faults: tuple[Fault, ...]
    unknown: tuple[str, ...]


def decide(
    memory: Memory, now: datetime, *, silences: Collection[Silence] = (), max_age_s: float = LIMITS["document_age_s"].value
) -> Decision:
    """Returns the verdict.

    Args:
        now: aware; a newest look that is older than ``max_age_s`` says nothing of the node any more.
    """
    faults = tuple(sorted((_fault(memory, one, now, silences) for one in memory.sessions if one.is_loud), key=_place))
    unknown = _unknown(memory, now, max_age_s)
    hang = _hang(memory)
    verdicts = {fault.finding.verdict for fault in faults} | ({Verdict.UNKNOWN} if unknown else set())
    verdict = next((one for one in (Verdict.FAILED, Verdict.UNKNOWN, Verdict.DEGRADED) if one in verdicts), Verdict.HEALTHY)
    action = max((hang, *(fault.action for fault in faults)), key=lambda rung: rung.rank)
    asking = [fault for fault in faults if fault.action is action]
    failed = [fault for fault in faults if fault.finding.verdict is Verdict.FAILED]
    return Decision(
        verdict=verdict,
        action=action,
        at_idle=bool(asking) and hang is not action and all(fault.at_idle for fault in asking),
        wants_test=any(fault.wanted.rank >= HARM.rank and not fault.is_proven and not fault.silence for fault in faults),
        is_confirmed=any(fault.is_proven for fault in failed) if failed else not unknown,
        faults=faults,
        unknown=unknown,
    )


def _place(fault: Fault) -> tuple[int, int, int, str, str]:
    ranks = (Verdict.FAILED, Verdict.UNKNOWN, Verdict.DEGRADED, Verdict.HEALTHY)
    return ranks.index(fault.finding.verdict), -fault.action.rank, -fault.wanted.rank, fault.accelerator, fault.cause


def _unknown(memory: Memory, now: datetime, max_age_s: float) -> tuple[str, ...]:
    if not memory.silent:
        return ("nothing has been seen of it yet",)
    words = [f"{stream} gave no answer at {count} looks in a row" for stream, count in memory.silent if count]
    words += [text for _stream, missing in memory.unknown for _name, text in missing]
    age_s = (now - datetime.fromisoformat(memory.now)).total_seconds()
    if age_s > max_age_s:
        words.append(f"the last look is {age_s:.0f} s old, limit {max_age_s:.0f} s")
    return tuple(dict.fromkeys(words))


def _silent_witness(memory: Memory, session: Session) -> set[str]:
    """A source that falls silent after a fatal line, while another one of the node answers, bears the line out."""
    if (
        session.event is None
        or session.event.verdict is not Verdict.FAILED
        or not any(count == 0 for _name, count in memory.silent)
    ):
        return set()
    return {f"{name} (silent)" for name, count in memory.silent if count >= SILENT_LOOKS and name not in session.streams}


def _hang(memory: Memory) -> HealthAction:
    """A source that hangs while the node's other ones answer is a fault in itself; where all are silent, the node is."""
    counts = [count for _stream, count in memory.silent]
    is_hung = any(count >= HANG_LOOKS for count in counts) and any(count == 0 for count in counts)
    return HealthAction.REBOOT_NODE if is_hung else HealthAction.NONE


def _fault(memory: Memory, session: Session, now: datetime, silences: Collection[Silence]) -> Fault:
    finding = strictest(session.event, session.state)
    if finding is None:
        raise AssertionError("a fault that is told has a finding")
    wanted, climbed = _climb(memory, session, finding)
    streams, proof = _proof(memory, session)
    is_held = wanted.rank >= HARM.rank and not proof
    silence = silence_over(silences, finding.code, now)
    action = wanted if not is_held and silence is None else min(wanted, HealthAction.RECORD, key=lambda rung: rung.rank)
    return Fault(
        accelerator=session.accelerator,
        cause=session.cause,
        finding=finding,
        wanted=wanted,
        action=action,
        seen_by=streams,
        proof=proof,
        climbed=climbed,
        clears=_clear_words(session),
        at_idle=session.at_idle,
        line_count=session.line_count,
        age_s=memory.watched_s - session.opened_s,
        silence=silence,
    )


def _climb(memory: Memory, session: Session, finding: Finding) -> tuple[HealthAction, str]:
    """Returns the rung that the fault asks for with all that is remembered, and why it is higher than its row's."""
    steps = [(finding.action, "")]
    steps += _by_rate(memory, session)
    if session.remedy is not HealthAction.NONE and session.bad_since_remedy >= session.good_looks:
        steps.append((next_rung(session.remedy), f"{session.remedy} did not help"))
    if session.repeat_action is not HealthAction.NONE:
        steps.append((session.repeat_action, f"{finding.code} came again within its window"))
    if finding.action.rank >= HARM.rank:
        steps += _lemon(memory, session, finding)
    return max(steps, key=lambda step: step[0].rank)


def _by_rate(memory: Memory, session: Session) -> list[tuple[HealthAction, str]]:
    if session.cause != "throttle":
        return []
    limit, window_s = LIMITS["hw_slowdowns_per_minute"], LIMITS["hw_slowdown_window_s"].value
    since_s = memory.watched_s - window_s
    count = max((sum(at >= since_s for at in tally.bad_at_s) for tally in session.tallies), default=0)
    per_minute = count * 60 / window_s
    if not limit.is_broken_by(per_minute):
        return []
    return [(HealthAction.DRAIN_AND_DIAG, f"{count} hardware slowdowns in {window_s:.0f} s ({limit.source})")]


def _lemon(memory: Memory, session: Session, finding: Finding) -> list[tuple[HealthAction, str]]:
    since_s = memory.watched_s - LEMON_S
    before = sum(
        1 for past in memory.past if past.is_session and (past.accelerator, past.cause) == session.key and past.at_s >= since_s
    )
    steps = []
    if before >= TWO:
        steps.append((HealthAction.DRAIN_AND_REPLACE, f"time {before + 1} in 7 days"))
    elif before:
        steps.append((next_rung(finding.action), "time 2 in 7 days"))
    remedies = sum(1 for done in memory.done if done.at_s >= since_s)
    if remedies >= MOST_REMEDIES:
        steps.append((HealthAction.DRAIN_AND_REPLACE, f"{remedies} remedies in 7 days"))
    return steps


def _proof(memory: Memory, session: Session) -> tuple[tuple[str, ...], str]:
    """Returns the sources that tell of the fault, and what proves it, in words; empty when nothing does."""
    streams = set(session.streams)
    for other in memory.sessions:
        if other is not session and other.is_loud and _bears_witness(other, session):
            streams |= set(other.streams)
    named = tuple(sorted(streams | _silent_witness(memory, session)))
    if len(named) >= TWO:
        return named, f"{len(named)} sources: {', '.join(named)}"
    if not session.is_proven:
        return named, ""
    if session.burst_count >= TWO:
        return named, f"{session.burst_count} separate bursts"
    return named, f"seen at {session.proof} of 5 looks or more"


def _bears_witness(other: Session, session: Session) -> bool:
    """A fault of the same cause, or a witness, on the same accelerator or on the node as a whole."""
    is_same_place = other.accelerator == session.accelerator or NODE in {other.accelerator, session.accelerator}
    if not is_same_place or _verdict(other) is not Verdict.FAILED:
        return False
    if other.cause == session.cause:
        return True
    return session.cause != "program" and (other.cause in WITNESSES or session.cause in {"recovery", "test"})


def _verdict(session: Session) -> Verdict:
    finding = strictest(session.event, session.state)
    return Verdict.HEALTHY if finding is None else finding.verdict


def _clear_words(session: Session) -> str:
    looks = f"{session.good_looks} good looks in a row"
    return {
        "looks": looks,
        "quiet": "an hour without another line",
        "reset": f"a reset of the GPU or a boot, then {looks}",
        "boot": f"a boot, then {looks}",
        "never": "another node",
    }[session.clears]
