"""What the engine remembers of a node between looks: bounded, and plain enough to be kept in a row of the ledger."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding

VERSION: Final = 1
MOST_SESSIONS: Final = 48
MOST_PAST: Final = 64
MOST_MARKS: Final = 256
MOST_BOOTS: Final = 8
MOST_TEXT: Final = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What one stream saw of a fault: ``recent`` is one character a look (1 bad, 0 good), the newest last."""

    stream: str
    recent: str = ""
    good_run: int = 0
    bad_run: int = 0
    bad_at_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One fault of one accelerator (or the node) and cause, from its first sign to its clear condition.

    Attributes:
        opened_s, last_bad_s: in watched seconds. boot: where it began. codes: findings that belong to it.
        event, state: the strictest finding of each kind that stands. burst_count: bursts of fatal lines; line_count: all lines.
        last_uptime_s: of its newest line. clears, good_looks, samples, proof: the hardest of its codes' rules.
        repeat_action: rung that its repeats ask for. remedy: newest thing done about it. remedy_s: when; bad_since_remedy: looks.
        is_reset: a reset, a boot or the driver's word came after its newest line. is_proven, is_loud: latched.
    """

    accelerator: str
    cause: str
    opened_s: float
    last_bad_s: float
    boot: str | None
    codes: tuple[str, ...] = ()
    tallies: tuple[Tally, ...] = ()
    event: Finding | None = None
    event_stream: str = ""
    state: Finding | None = None
    burst_count: int = 0
    line_count: int = 0
    last_uptime_s: float | None = None
    clears: str = "looks"
    good_looks: int = 1
    samples: int = 1
    proof: int = 3
    at_idle: bool = True
    repeat_action: HealthAction = HealthAction.NONE
    remedy: HealthAction = HealthAction.NONE
    bad_since_remedy: int = 0
    is_reset: bool = False
    is_proven: bool = False
    is_loud: bool = False
    is_silenced: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Accelerator and cause."""
        return self.accelerator, self.cause

    @property
    def streams(self) -> tuple[str, ...]:
        """Sources that told of it, by name."""
        told = {tally.stream for tally in self.tallies if tally.bad_at_s}
        return tuple(sorted(told | ({self.event_stream} if self.event_stream else set())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What is remembered of a fault that is over, or of a burst of lines: the lemon memory."""

    accelerator: str
    cause: str
    code: str
    at_s: float
    boot: str | None
    action: HealthAction = HealthAction.NONE
    unit: str = ""
    pid: str = ""
    is_session: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A remedy that was carried out."""

    action: HealthAction
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far the lines of one accelerator and code were read in this boot."""

    accelerator: str
    code: str
    uptime_s: float | None
    unstamped: int
    burst_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """All that is remembered of one node.

    Attributes:
        watched_s: seconds that the node was watched, counted from look to look; a clock that jumps moves it little.
        now: the asker's time of the newest look, ISO 8601. boots: ids in the order they were seen, the newest last.
        silent: looks without an answer in a row, by stream. unknown: missing readings of each stream's newest look.
        taken: ``taken_at`` of each stream's newest look.
    """

    watched_s: float = 0.0
    now: str = ""
    boots: tuple[str, ...] = ()
    sessions: tuple[Session, ...] = ()
    past: tuple[Past, ...] = ()
    done: tuple[Done, ...] = ()
    marks: tuple[Mark, ...] = ()
    silent: tuple[tuple[str, int], ...] = ()
    unknown: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    taken: tuple[tuple[str, str], ...] = ()

    @property
    def boot(self) -> str | None:
        """The newest boot; None before the first one was told."""
        return self.boots[-1] if self.boots else None

    def session(self, accelerator: str, cause: str) -> Session | None:
        """Returns the open fault of an accelerator and cause."""
        return next((one for one in self.sessions if one.key == (accelerator, cause)), None)


def bounded(memory: Memory) -> Memory:
    """Returns the memory with its oldest parts dropped where it grew too long."""
    sessions = memory.sessions
    lengths = (len(memory.past), len(memory.done), len(memory.boots))
    if len(sessions) <= MOST_SESSIONS and len(memory.marks) <= MOST_MARKS and max(lengths) <= MOST_BOOTS:
        return memory
    if len(sessions) > MOST_SESSIONS:
        kept = sorted(sessions, key=lambda one: (one.last_bad_s, one.key))[-MOST_SESSIONS:]
        sessions = tuple(sorted(kept, key=lambda one: one.key))
    return replace(
        memory,
        sessions=sessions,
        past=memory.past[-MOST_PAST:],
        done=memory.done[-MOST_PAST:],
        marks=memory.marks[-MOST_MARKS:],
        boots=memory.boots[-MOST_BOOTS:],
    )


def cut(finding: Finding) -> Finding:
    """Returns the finding with texts short enough to be kept."""
    return replace(
        finding, what=finding.what[:MOST_TEXT], evidence=finding.evidence[:MOST_TEXT], source=finding.source[:MOST_TEXT]
    )


def to_text(memory: Memory) -> str:
    """Returns the memory as one line of JSON, parts that say nothing left out."""
    return json.dumps({"version": VERSION, **_lean(asdict(memory))}, sort_keys=True, separators=(",", ":"))


def _lean(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lean(part) for name, part in value.items() if not _says_nothing(part)}
    return [_lean(part) for part in value] if isinstance(value, list | tuple) else value


def _says_nothing(part: Any) -> bool:
    """Numbers are always kept: 0 is a reading."""
    return part is None or part is False or (isinstance(part, str | list | tuple) and not part) or part == HealthAction.NONE


def from_text(text: str | None) -> Memory:
    """Returns the memory of ``to_text``'s text; a new one for None and for a text that cannot be read.

    A memory that is lost costs evidence, which is gathered again; it never harms a node.
    """
    if not text:
        return Memory()
    try:
        values = json.loads(text)
        if values.pop("version") != VERSION:
            return Memory()
        return _memory(values)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Memory()


def _memory(values: dict[str, Any]) -> Memory:
    return Memory(
        watched_s=float(values.get("watched_s", 0.0)),
        now=str(values.get("now", "")),
        boots=tuple(values.get("boots", ())),
        sessions=tuple(_session(entry) for entry in values.get("sessions", ())),
        past=tuple(Past(**{**_PAST, **entry, "action": _action(entry)}) for entry in values.get("past", ())),
        done=tuple(Done(action=_action(entry), at_s=float(entry.get("at_s", 0.0))) for entry in values.get("done", ())),
        marks=tuple(Mark(**{**_MARK, **entry}) for entry in values.get("marks", ())),
        silent=tuple((str(name), int(count)) for name, count in values.get("silent", ())),
        unknown=tuple((str(name), tuple((str(a), str(b)) for a, b in words)) for name, words in values.get("unknown", ())),
        taken=tuple((str(name), str(at)) for name, at in values.get("taken", ())),
    )


_PAST: Final[dict[str, Any]] = {"accelerator": "", "cause": "", "code": "", "at_s": 0.0, "boot": None}
_MARK: Final[dict[str, Any]] = {"accelerator": "", "code": "", "uptime_s": None, "unstamped": 0, "burst_at_s": 0.0}


def _action(entry: dict[str, Any], name: str = "action") -> HealthAction:
    return HealthAction(entry.get(name, HealthAction.NONE))


def _session(entry: dict[str, Any]) -> Session:
    values: dict[str, Any] = {
        "accelerator": "",
        "opened_s": 0.0,
        "last_bad_s": 0.0,
        "boot": None,
        "at_idle": False,
        **entry,
        "codes": tuple(entry.get("codes", ())),
        "tallies": tuple(_tally(tally) for tally in entry.get("tallies", ())),
        "event": _finding(entry.get("event")),
        "state": _finding(entry.get("state")),
        "repeat_action": _action(entry, "repeat_action"),
        "remedy": _action(entry, "remedy"),
    }
    return Session(**values)


def _tally(entry: dict[str, Any]) -> Tally:
    return Tally(**{**entry, "bad_at_s": tuple(entry.get("bad_at_s", ()))})


def _finding(entry: dict[str, Any] | None) -> Finding | None:
    if entry is None:
        return None
    return Finding(
        code=entry["code"],
        what=entry.get("what", ""),
        verdict=Verdict(entry["verdict"]),
        action=_action(entry),
        evidence=entry.get("evidence", ""),
        source=entry.get("source", ""),
    )
