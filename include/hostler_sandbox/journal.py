"""What happened: every wire call and every change of a machine, in memory and as JSON lines."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Journal:
    """Append-only and thread-safe. Entries are dicts with ``sequence``, ``at`` (UTC), ``kind`` (wire, machine, control, node)."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._entries: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8") if path else None

    def write(self, kind: str, **facts: Any) -> None:
        """Adds an entry; values must be JSON or have a plain text form."""
        with self._lock:
            entry = {"sequence": len(self._entries) + 1, "at": datetime.now(UTC).isoformat(), "kind": kind, **facts}
            self._entries.append(entry)
            if self._file and not self._file.closed:
                self._file.write(json.dumps(entry, default=str) + "\n")
                self._file.flush()

    def after(self, sequence: int = 0, kind: str | None = None) -> list[dict[str, Any]]:
        """Returns entries above a sequence number, of one kind or all, oldest first."""
        with self._lock:
            return [entry for entry in self._entries[sequence:] if kind in (None, entry["kind"])]

    def close(self) -> None:
        """Closes the file; the entries stay readable in memory."""
        with self._lock:
            if self._file:
                self._file.close()
