"""The hardware state of one node: a text file of ``key=value`` lines that every reader opens anew.

The NVML library (C), the programs on the node and the sandbox all read this file, so a fault written here shows everywhere
at once. Beside it lie ``kernel.log`` (one kernel message a line: ``<seconds since the host booted> <text>``), ``xid.events``
(one event a
line: ``<accelerator index> <xid>``) and ``node.json`` (facts that never change while the node lives).
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

STATE_FILE: Final = "hardware.state"
KERNEL_LOG: Final = "kernel.log"
XID_EVENTS: Final = "xid.events"
FACTS_FILE: Final = "node.json"


class NodeState:
    """Reads and writes the files of one node. ``folder`` is the node's folder, the one above its root folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self._facts: dict[str, Any] = {}

    def facts(self) -> dict[str, Any]:
        """Returns the fixed facts written at boot: id, addresses, interpreter, site folders to link packages from."""
        if not self._facts:
            self._facts = json.loads((self.folder / FACTS_FILE).read_text(encoding="utf-8"))
        return self._facts

    def read(self) -> dict[str, str]:
        """Returns all keys. A line without ``=`` is skipped: a half-edited file must not stop every program."""
        text = (self.folder / STATE_FILE).read_text(encoding="utf-8")
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    @contextlib.contextmanager
    def change(self) -> Iterator[dict[str, str]]:
        """Gives the keys for change and writes them back whole, under a lock; nothing is written when the body raises."""
        with (self.folder / "hardware.lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            values = self.read()
            yield values
            self.write(values)

    def write(self, values: dict[str, str]) -> None:
        """Replaces the state file in one step."""
        temporary = self.folder / f"{STATE_FILE}.{os.getpid()}"
        temporary.write_text("".join(f"{key}={value}\n" for key, value in values.items()), encoding="utf-8")
        temporary.replace(self.folder / STATE_FILE)

    def log_kernel(self, *messages: str) -> None:
        """Appends messages to the kernel log, stamped now."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)  # what /proc/uptime counts, so that the two agree on a node
        with (self.folder / KERNEL_LOG).open("a", encoding="utf-8") as log:
            log.writelines(f"{now:.6f} {message}\n" for message in messages)

    def kernel_log(self) -> list[tuple[float, str]]:
        """Returns (seconds since the host booted, text) of this boot's kernel messages, oldest first."""
        path = self.folder / KERNEL_LOG
        if not path.exists():
            return []
        lines = (line.split(" ", 1) for line in path.read_text(encoding="utf-8").splitlines())
        return [(float(stamp), text) for stamp, text in lines]


def accelerators(values: dict[str, str]) -> list[dict[str, str]]:
    """Returns one mapping of keys for each accelerator on the bus, in index order; those taken off the bus are left out."""
    found = []
    for index in range(int(values.get("gpu.count", "0"))):
        prefix = f"gpu.{index}."
        one = {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}
        one["index"] = str(index)
        if one.get("absent") != "1":
            found.append(one)
    return found
