"""Samples of what the node does: its accelerators, who holds them, who is logged in. Plain facts: nothing is judged here.

A value that cannot be read is null, never 0. The daemon adds a sample every ``SAMPLE_S``, and each question adds one more, so
that the answer ends with this very moment. Times are monotonic: samples of an earlier boot are not told.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from hostler.recipes.agent import jobs
from hostler.recipes.agent.layout import NodeHome, age_s, stamp

SAMPLE_S = 15.0
KEPT_SAMPLES = 6000
"""In each of two files: a day and more at one sample in 15 s."""

_SMI_S = 10.0
_GLANCE_S = 0.2  # a CPU share needs two readings
_UTMP = struct.Struct("=h382x")  # the record's type, and the rest of its 384 bytes. Source: utmp(5)
_USER_PROCESS = 7
_IDLE_FIELDS = (3, 4)  # idle and iowait of /proc/stat's first line. Source: proc(5)


class Sampler:
    """Takes samples of one node and keeps them."""

    def __init__(self, home: NodeHome) -> None:
        self._home = home
        self._file = home.agent / "load.jsonl"
        self._older = home.agent / "load.old.jsonl"
        self._cpu: tuple[float, float] | None = None
        self._stuck: subprocess.Popen[bytes] | None = None

    def record(self) -> None:
        """Takes a sample and adds it; a full disk only leaves a gap, which counts as not known.

        Without a lock: the daemon is one, and a lock file would make the agent's folder anew after somebody removed it.
        """
        line = json.dumps(self.take()) + "\n"
        with contextlib.suppress(OSError):
            if self._file.exists() and self._file.stat().st_size > KEPT_SAMPLES * len(line):
                os.replace(str(self._file), str(self._older))  # noqa: PTH105 - as in layout
            with self._file.open("a", encoding="ascii") as sink:
                sink.write(line)

    def take(self) -> dict[str, Any]:
        """Returns one sample: ``util`` (0 to 1 of each accelerator), ``processes``, ``logins``, ``jobs``, ``cpu``, ``why``."""
        utilisation, why = self._utilisation()
        return {
            "at": stamp(),
            "util": utilisation,
            "processes": self._processes(),
            "logins": logins(),
            "jobs": len(jobs.working(self._home, silent_s=float("inf"))),
            "cpu": self._cpu_share(),
            "why": why,
        }

    def samples(self, window_s: float) -> list[dict[str, Any]]:
        """Returns samples of this boot that are at most ``window_s`` old, oldest first; ``at`` becomes ``age_s``."""
        found = []
        for path in (self._older, self._file):
            with contextlib.suppress(OSError):
                for line in path.read_text(encoding="ascii", errors="replace").splitlines():
                    found.append(_aged(line))
        return [one for one in found if one is not None and one["age_s"] <= window_s]

    def _utilisation(self) -> tuple[list[float | None] | None, str | None]:
        code, output = self._smi("--query-gpu=uuid,utilization.gpu", "--format=csv,noheader,nounits")
        rows = [line.split(",") for line in output.splitlines() if line.strip()]
        if code != 0 or not rows or any(len(row) != 2 for row in rows):  # noqa: PLR2004 - the two fields
            return None, (output.strip().splitlines() or ["nvidia-smi gave no answer"])[-1][:200]
        return [_ratio(row[1]) for row in rows], None

    def _processes(self) -> int | None:
        code, output = self._smi("--query-compute-apps=pid", "--format=csv,noheader")
        return len(output.split()) if code == 0 else None

    def _smi(self, *words: str) -> tuple[int | None, str]:
        """Returns exit code (None: it gave no answer) and output. One that hangs in the driver is not joined by others."""
        if self._stuck is not None and self._stuck.poll() is None:
            return None, "nvidia-smi still hangs"
        with tempfile.TemporaryFile() as out:
            try:
                child = subprocess.Popen(["nvidia-smi", *words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            except OSError as error:
                return None, f"nvidia-smi: {error.strerror}"
            try:
                code = child.wait(timeout=_SMI_S)
            except subprocess.TimeoutExpired:
                child.kill()
                self._stuck = child
                return None, "nvidia-smi gave no answer"
            out.seek(0)
            return code, out.read().decode("utf-8", "replace")

    def _cpu_share(self) -> float | None:
        """Returns the busy part of the host's CPU time since the last sample, 0 to 1."""
        before = self._cpu
        if before is None:
            before = _cpu_times()
            time.sleep(_GLANCE_S)
        self._cpu = after = _cpu_times()
        if before is None or after is None or after[1] <= before[1]:
            return None
        return round((after[0] - before[0]) / (after[1] - before[1]), 4)


def logins() -> int | None:
    """Returns how many sessions with a terminal are open; None when neither the terminals nor the log-in records can be read.

    Our own connections have no terminal. A session that ``tmux`` or ``screen`` keeps has one.
    """
    root = _root()
    found = []
    with contextlib.suppress(OSError):
        found.append(sum(name.isdigit() for name in os.listdir(str(root / "dev/pts"))))  # noqa: PTH208 - names are all
    with contextlib.suppress(OSError):
        content = (root / "run/utmp").read_bytes()
        whole = len(content) - len(content) % _UTMP.size
        found.append([kind for (kind,) in _UTMP.iter_unpack(content[:whole])].count(_USER_PROCESS))
    return max(found) if found else None


def _root() -> Path:
    """The machine's own root, where the machine is not the whole of its host."""
    return Path(os.environ.get("HOSTLER_ROOT") or "/")


def _cpu_times() -> tuple[float, float] | None:
    """Returns busy and all CPU time since boot."""
    try:
        own = _root() / "proc/stat"
        words = (own if own.exists() else Path("/proc/stat")).read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        times = [float(word) for word in words]
        return sum(times) - sum(times[place] for place in _IDLE_FIELDS), sum(times)
    except (OSError, ValueError, IndexError):
        return None


def _ratio(word: str) -> float | None:
    """Returns ``37`` as 0.37; None for ``[N/A]`` (as under MIG) and for anything else."""
    try:
        return float(word) / 100
    except ValueError:
        return None


def _aged(line: str) -> dict[str, Any] | None:
    try:
        sample = json.loads(line)
        age = age_s(sample.pop("at"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None if age is None else dict(sample, age_s=round(age, 1))


def answer(home: NodeHome, window_s: float) -> dict[str, Any]:
    """Returns what the node did in the last ``window_s`` seconds, up to now."""
    sampler = Sampler(home)
    sampler.record()
    return {"samples": sampler.samples(window_s), "every_s": SAMPLE_S}
