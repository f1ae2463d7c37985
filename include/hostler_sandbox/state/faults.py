"""Faults on demand for calls on the wire: which calls they meet, how often, and what they do."""

import itertools
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

KINDS: Final = {
    "throttle": "refuses the call as too many",
    "unauthorized": "refuses the call: the role may not",
    "error": "refuses the call with code, message and status",
    "answer_lost": "does the call, then cuts the connection (mode: cut) or answers HTTP 500 without a body (mode: empty)",
    "slow": "answers after delay_s real seconds",
    "capacity": "refuses a launch as out of stock, whatever the pool holds",
    "late_create": "refuses a launch with code, message and status, yet the machine comes up after delay_s",
    "boot_failure": "the machine runs for the cloud but its SSH never opens (mode: no_ssh), or it ends while pending (mode: ends)",
}
_MODES: Final = {"answer_lost": ("cut", "empty"), "boot_failure": ("no_ssh", "ends")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        kind: one of ``KINDS``. service, action, region, zone, instance_type: the calls that it meets; ``*`` meets all.
        count: how many calls it meets in all; None: without end. skip: so many matching calls go free first.
        rate: share of the matching calls that it meets, 0 to 1. for_s: sandbox seconds that it lives; None: for ever.
        delay_s, code, message, status, mode: see ``KINDS``.
        retry_after_s: sent as a header with a refusal; None: not sent, as EC2 does.
    """

    kind: str
    service: str = "*"
    action: str = "*"
    region: str = "*"
    zone: str = "*"
    instance_type: str = "*"
    count: int | None = 1
    skip: int = 0
    rate: float = 1.0
    for_s: float | None = None
    delay_s: float = 0.0
    code: str = "InternalError"
    message: str = "An internal error has occurred"
    status: int = 500
    mode: str = ""
    retry_after_s: int | None = None

    def meets(self, facts: Mapping[str, str | None]) -> bool:
        """True if the fault speaks of a call with these facts."""
        return all(
            getattr(self, name) in {"*", facts.get(name)} for name in ("service", "action", "region", "zone", "instance_type")
        )


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "count": (int, type(None)), "skip": (int,), "rate": (int, float), "for_s": (int, float, type(None)), "delay_s": (int, float),
    "status": (int,), "retry_after_s": (int, type(None)),
}  # fmt: skip


def read_fault(body: Mapping[str, Any]) -> Fault:
    """Returns a fault as the control API was given it. Raises ValueError, which names the field and what is allowed."""
    known = {field.name for field in fields(Fault)}
    for name, value in body.items():
        if name not in known:
            raise ValueError(f"{name}: unknown; allowed: {', '.join(sorted(known))}")
        if not isinstance(value, _TYPES.get(name, (str,))) or isinstance(value, bool):
            raise ValueError(f"{name}: {value!r}: wrong type")  # noqa: TRY004 - one type of error for all wrong fields
    kind = body.get("kind")
    if kind not in KINDS:
        raise ValueError(f"kind: {kind!r}: allowed: {', '.join(KINDS)}")
    allowed = _MODES.get(kind, ("",))
    if body.get("mode", "") not in {*allowed, ""}:
        raise ValueError(f"mode: {body['mode']!r}: allowed: {', '.join(allowed)}")
    fault = Fault(**dict(body))
    if not 0 <= fault.rate <= 1:
        raise ValueError(f"rate: {fault.rate}: must be 0 to 1")
    if fault.count is not None and fault.count < 1:
        raise ValueError(f"count: {fault.count}: must be 1 or more, or null for without end")
    return fault


@dataclass(slots=True, kw_only=True)
class _Planned:
    fault_id: str
    fault: Fault
    left: int | None
    to_skip: int
    ends_at: datetime | None


class Faults:
    """The faults in force, in the order they were given. Thread-safe.

    Args:
        seed: decides which calls a rate meets.
    """

    def __init__(self, now: Callable[[], datetime], seed: int | None = None) -> None:
        self._now = now
        self._rng = random.Random(seed)  # noqa: S311 - a replayable choice, no secret
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._plan: list[_Planned] = []

    def add(self, fault: Fault) -> str:
        """Puts a fault in force and returns its id."""
        ends_at = None if fault.for_s is None else self._now() + timedelta(seconds=fault.for_s)
        with self._lock:
            planned = _Planned(
                fault_id=f"f-{next(self._numbers)}", fault=fault, left=fault.count, to_skip=fault.skip, ends_at=ends_at
            )
            self._plan.append(planned)
        return planned.fault_id

    def take(self, kind: str, facts: Mapping[str, str | None]) -> Fault | None:
        """Returns the first fault of the kind that meets the call, and counts it; None when there is none."""
        with self._lock:
            now = self._now()
            self._plan = [one for one in self._plan if one.left != 0 and (one.ends_at is None or now < one.ends_at)]
            for one in self._plan:
                if one.fault.kind != kind or not one.fault.meets(facts):
                    continue
                if one.to_skip > 0:
                    one.to_skip -= 1
                elif self._rng.random() < one.fault.rate:
                    one.left = None if one.left is None else one.left - 1
                    return one.fault
        return None

    def would_meet(self, kind: str, facts: Mapping[str, str | None]) -> bool:
        """True when a fault of the kind is in force for such a call; none is counted."""
        with self._lock:
            now = self._now()
            return any(
                one.left != 0
                and (one.ends_at is None or now < one.ends_at)
                and one.fault.kind == kind
                and one.fault.meets(facts)
                for one in self._plan
            )

    def remove(self, fault_id: str) -> bool:
        """Takes a fault back; False when it is not in force."""
        with self._lock:
            before = len(self._plan)
            self._plan = [one for one in self._plan if one.fault_id != fault_id]
            return len(self._plan) < before

    def clear(self) -> None:
        """Takes all faults back."""
        with self._lock:
            self._plan.clear()

    def shown(self) -> list[dict[str, Any]]:
        """Returns the faults in force, for reports."""
        with self._lock:
            return [{"id": one.fault_id, "left": one.left, **asdict(one.fault)} for one in self._plan if one.left != 0]
