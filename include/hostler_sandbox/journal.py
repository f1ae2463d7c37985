"""The journal: every call on the wire and every change of a machine, in order, in memory and as JSON lines."""

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from hostler_sandbox.clock import SandboxClock

REFUSALS: Final = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "Unsupported",
        "VcpuLimitExceeded",
    }
)
"""Codes with which a request for a machine is refused for want of stock, quota or price. Source: "Error codes for the Amazon EC2
API", EC2 API reference."""


class Journal:
    """Entries have ``sequence`` (from 1), ``at`` (sandbox time), ``kind`` and the fields of their kind. Thread-safe.

    Kinds: ``wire`` (a call of a cloud's API), ``control`` (a call of the control API), ``machine`` (a machine changed), ``bus``
    (an event as a cloud's event bus would deliver it).

    Args:
        path: the file; None keeps entries in memory only.
    """

    def __init__(self, clock: SandboxClock, path: Path | None = None) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: list[dict[str, Any]] = []
        self._file: TextIO | None = path.open("a", encoding="utf-8", buffering=1) if path else None

    def add(self, kind: str, **fields: Any) -> None:
        """Adds an entry; values must be JSON values."""
        at = self._clock.now().isoformat(timespec="milliseconds")
        with self._lock:
            entry = {"sequence": len(self._entries) + 1, "at": at, "kind": kind, **fields}
            self._entries.append(entry)
            if self._file:
                self._file.write(json.dumps(entry, separators=(",", ":")) + "\n")

    def after(self, sequence: int = 0, **wanted: Any) -> list[Mapping[str, Any]]:
        """Returns the entries after ``sequence``, oldest first, whose fields equal all of ``wanted``."""
        with self._lock:
            found = self._entries[max(sequence, 0) :]
        return [entry for entry in found if all(entry.get(key) == value for key, value in wanted.items())]

    def figures(self) -> dict[str, int]:
        """Returns counts since the start: wire calls, launch calls, refusals (launch calls refused for want of stock, quota
        or price), machines launched, and machines lost (taken by the cloud or ended by their own guest or a fault).
        """
        with self._lock:
            entries = list(self._entries)
        machines = [entry for entry in entries if entry["kind"] == "machine"]
        wire = [entry for entry in entries if entry["kind"] == "wire"]
        return {
            "wire_calls": len(wire),
            "refusals": sum(1 for entry in wire if entry.get("error") in REFUSALS),
            "launch_calls": sum(1 for entry in wire if entry.get("action") == "RunInstances"),
            "nodes_launched": sum(1 for entry in machines if entry["event"] == "launched"),
            "nodes_lost": sum(1 for entry in machines if entry["event"] == "lost"),
        }

    def close(self) -> None:
        """Closes the file; entries stay readable in memory."""
        with self._lock:
            if self._file:
                self._file.close()
                self._file = None
