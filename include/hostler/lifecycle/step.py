"""What the pure core may answer: effects to do now, waits, done, failed. And what a driver of a lease remembers."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from hostler.cloud.driver import MachineState
from hostler.ledger.port import Caps, StockOut
from hostler.model.enums import Phase
from hostler.model.offering import Offering
from hostler.reach.port import JobStatus


class Kind(StrEnum):
    """The effects. Those of a lease run alone; those of slots run side by side."""

    PLAN = "plan"
    GRANT = "grant"
    LOOK = "look"
    OPEN_INTENTS = "open-intents"
    WITHDRAW = "withdraw"
    LAUNCH = "launch"
    BOOT = "boot"
    START_SETUP = "start-setup"
    POLL_SETUP = "poll-setup"
    PROBE = "probe"
    END_NODE = "end-node"
    OPEN_JOB = "open-job"
    ATTACH_JOB = "attach-job"
    POLL_JOB = "poll-job"
    BREAK_JOB = "break-job"
    TEND = "tend"
    SEAL = "seal"
    DRAIN = "drain"
    FINISH = "finish"
    MARK = "mark"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One thing to do.

    Attributes:
        key: ``<kind>:<slot or node>``; backoff and hindrances are remembered by it.
        slot_index: which slot; None for effects of the lease. node_name: which node, when it is about one.
        slots, offering: for OPEN_INTENTS. phase: for MARK. reason: words that go into the record.
    """

    kind: Kind
    key: str
    slot_index: int | None = None
    node_name: str | None = None
    slots: tuple[int, ...] = ()
    offering: Offering | None = None
    phase: Phase | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing to do for this slot or lease before ``retry_after_s`` (above 0) has passed."""

    reason: str
    retry_after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The phase is reached and marked."""

    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The phase cannot be reached; the failure is already in the ledger, or is one that a retry may get past."""

    reason: str
    is_permanent: bool = True


Step = Effect | Wait | Done | Fail
"""``next_step`` answers a tuple of these: one Done or Fail alone, or effects and waits."""


@dataclass(slots=True, kw_only=True)
class Memory:
    """What one ``converge`` call remembers between rounds. Losing it costs time, never truth.

    Attributes:
        fence: token of this driver. caps: limits in force for the tenant.
        stock_outs, is_spending_stopped: read anew each round.
        looked_at: when the last look that reached every region began. call_budget_s, list_lag_s: the slowest driver's.
        machines: state of each machine in the last look, by provider id.
        not_before: by effect key, when it is worth trying again. tries: by effect key, in a row. notes: hindrances in words.
        called: intents whose launch call was made and answered "not made" (throttled): they can be withdrawn.
        statuses: by node, what it said last of its job.
        notices: by provider id, an interruption that the cloud or the node announced. taken: those whose machine goes within
            minutes; a maintenance of next week, or a mere advice, is not among them.
        fatal: the original error that ends the lease early; None while all is well.
    """

    fence: int
    caps: Caps = field(default_factory=Caps)
    stock_outs: tuple[StockOut, ...] = ()
    is_spending_stopped: bool = False
    looked_at: datetime | None = None
    call_budget_s: float = 0.0
    list_lag_s: float = 0.0
    machines: dict[str, MachineState] = field(default_factory=dict)
    not_before: dict[str, datetime] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, JobStatus] = field(default_factory=dict)
    notices: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    fatal: str | None = None

    def hold(self, key: str, now: datetime, after_s: float, note: str = "") -> None:
        """Remembers not to do ``key`` before ``after_s`` seconds have passed, and why."""
        self.not_before[key] = now + timedelta(seconds=after_s)
        self.tries[key] = self.tries.get(key, 0) + 1
        self.notes[key] = note

    def clear(self, key: str) -> None:
        """Forgets hindrances of ``key``: it went well."""
        self.not_before.pop(key, None)
        self.tries.pop(key, None)
        self.notes.pop(key, None)

    def backoff_s(self, key: str, base_s: float, cap_s: float) -> float:
        """Returns ``base_s`` doubled by each try in a row, at most ``cap_s``."""
        return min(cap_s, base_s * 2.0 ** min(self.tries.get(key, 0), 16))

    def left_s(self, key: str, now: datetime) -> float:
        """Returns seconds until ``key`` may be done; 0 when it may be done now."""
        at = self.not_before.get(key)
        return 0.0 if at is None else max(0.0, (at - now).total_seconds())


def when_due(effect: Effect, memory: Memory, now: datetime, reason: str) -> Effect | Wait:
    """Returns the effect when its backoff is over, else a wait with the hindrance's words (or ``reason``)."""
    left_s = memory.left_s(effect.key, now)
    if left_s <= 0:
        return effect
    return Wait(reason=memory.notes.get(effect.key) or reason, retry_after_s=left_s)
