"""What a workload reports: JSON lines in its metrics file, followed as they come. Bad lines are skipped, never fatal."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

LINE_BYTES = 64 * 1024
READ_BYTES = 1024 * 1024
MOST_METRICS = 128
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def empty() -> dict[str, Any]:
    """Returns the report of a workload that has said nothing yet."""
    return {"step": 0, "resumed_from_step": 0, "metrics": {}, "weights_sha256": None, "lines": 0}


def take_line(report: dict[str, Any], line: bytes) -> None:
    """Adds one line's values to the report; a line that is no JSON object changes nothing."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(values, dict):
        return
    report["lines"] += 1
    for name, value in values.items():
        if name == "weights_sha256":
            if isinstance(value, str) and _SHA256.fullmatch(value):
                report[name] = value
        elif _is_number(value):
            _take_number(report, name, value)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**63


def _take_number(report: dict[str, Any], name: str, value: float) -> None:
    if name in {"step", "resumed_from_step"}:
        if value >= 0:
            report[name] = int(value)
    elif _NAME.fullmatch(name) and (name in report["metrics"] or len(report["metrics"]) < MOST_METRICS):
        report["metrics"][name] = float(value)


class MetricsFollower:
    """Reads what was added to a metrics file. ``report`` holds the last value of everything."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._waiting = b""
        self._skipping = False
        self.report = empty()

    def follow(self, *, at_end: bool = False) -> bool:
        """Reads on; True when there was anything new. ``at_end``: takes a last line without a line end, too."""
        try:
            with self._path.open("rb") as source:
                source.seek(self._offset)
                data = source.read(READ_BYTES)
        except OSError:
            return False
        self._offset += len(data)
        *lines, self._waiting = (self._waiting + data).split(b"\n")
        for line in lines:
            if not self._skipping and len(line) <= LINE_BYTES:
                take_line(self.report, line)
            self._skipping = False
        if len(self._waiting) > LINE_BYTES:  # nobody reports that much in a line: read on to its end, keep nothing
            self._waiting, self._skipping = b"", True
        if at_end and not data and self._waiting and not self._skipping:
            take_line(self.report, self._waiting)
            self._waiting = b""
        return bool(data)
