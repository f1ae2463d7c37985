"""Faults that tests and people order by the control API; each is used up by count."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

KINDS: Final = {
    "throttle": "RequestLimitExceeded (HTTP 503) before any effect",
    "unauthorized": "UnauthorizedOperation (HTTP 403) before any effect",
    "error": "any `code` with `status` and `message`, before any effect",
    "answer_lost": "the effect happens, then the connection is cut (or, with `status`, an empty body comes)",
    "slow": "the answer comes `seconds` late",
    "late_create": "RunInstances answers InternalError, yet the machine comes up",
    "boot_failure": "the machine runs for the cloud, but never answers",
}
"""Fault kind -> what it does."""


class FaultError(ValueError):
    """The order of a fault is wrong; the text says what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One ordered fault.

    Attributes:
        action: API action it waits for, such as ``RunInstances``; ``*`` is any of EC2.
        count: how many times; None until it is cleared. zone: only for calls that name this zone.
    """

    kind: str
    action: str = "*"
    count: int | None = 1
    zone: str | None = None
    code: str = "InternalError"
    status: int = 0
    message: str = "simulated"
    seconds: float = 0.0


class Faults:
    """All ordered faults, thread-safe."""

    def __init__(self) -> None:
        self._orders: list[Fault] = []
        self._lock = threading.Lock()

    def order(self, document: Mapping[str, Any]) -> Fault:
        """Adds a fault from a JSON document. Raises FaultError."""
        if document.get("kind") not in KINDS:
            raise FaultError(f"kind: allowed are {', '.join(sorted(KINDS))}")
        try:
            fault = Fault(**document)
        except TypeError as error:
            raise FaultError(f"unknown field; allowed are {', '.join(Fault.__slots__)}") from error
        with self._lock:
            self._orders.append(fault)
        return fault

    def clear(self) -> None:
        """Takes all faults back."""
        with self._lock:
            self._orders.clear()

    def take(self, kind: str, action: str, zone: str | None = None) -> Fault | None:
        """Returns the first fault that waits for this call and uses it up once; None when there is none."""
        with self._lock:
            for index, fault in enumerate(self._orders):
                if fault.kind == kind and fault.action in ("*", action) and fault.zone in (None, zone):
                    if fault.count is not None:
                        left = fault.count - 1
                        self._orders[index : index + 1] = [replace(fault, count=left)] if left else []
                    return fault
        return None
