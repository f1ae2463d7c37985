"""``hostler explain-health --lines``: kernel lines in, one JSON line each out, as they come. Needs no ledger and no fleet."""

import json
import os
import select
import sys
import time
from collections.abc import Iterator
from typing import Final

from hostler.health.kernel_burst import KernelLog
from hostler.health.kernel_event import KernelEvent

CHUNK_BYTES: Final = 64 * 1024
MAX_LINE_BYTES: Final = 256 * 1024
"""The rest of a longer line is dropped; the kernel's own end at 1 KiB."""
PATIENCE_S: Final = 1.0
"""How long a line that hangs on later ones is held back when none come."""


class LineSplitter:
    """Cuts a stream of bytes into lines of bounded length; bytes that are no UTF-8 become U+FFFD."""

    def __init__(self) -> None:
        """Begins with nothing."""
        self._rest = b""
        self._is_dropping = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yields the lines that this chunk completes."""
        *whole, rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            if not self._is_dropping:
                yield line.decode("utf-8", "replace").rstrip("\r")
            self._is_dropping = False
        if len(rest) > MAX_LINE_BYTES:
            if not self._is_dropping:
                yield rest[:MAX_LINE_BYTES].decode("utf-8", "replace")
            self._is_dropping, rest = True, b""
        self._rest = b"" if self._is_dropping else rest

    def close(self) -> Iterator[str]:
        """Yields the last line when it had no end."""
        if self._rest and not self._is_dropping:
            yield self._rest.decode("utf-8", "replace")
        self._rest = b""


def explain_lines() -> int:
    """Prints one JSON line for each line of standard input, in order, until it ends. Returns 0."""
    log, splitter = KernelLog(), LineSplitter()
    source = sys.stdin.fileno()
    held_since: float | None = None
    while True:
        if log.is_waiting:
            held_since = held_since or time.monotonic()
            left_s = held_since + PATIENCE_S - time.monotonic()
            ready = select.select([source], [], [], max(left_s, 0.0))[0] if left_s > 0 else []
            if not ready:
                _show(log.flush())
                held_since = None
                continue
        else:
            held_since = None
        chunk = os.read(source, CHUNK_BYTES)
        if not chunk:
            break
        _show(event for line in splitter.feed(chunk) for event in log.feed(line))
    _show(event for line in splitter.close() for event in log.feed(line))
    _show(log.flush())
    return 0


def _show(events: "Iterator[KernelEvent] | list[KernelEvent]") -> None:
    text = "".join(json.dumps(event.document()) + "\n" for event in events)
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()
