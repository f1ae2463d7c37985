"""Rotation of one log file that somebody writes to without pause: no line lost, none twice, whatever ends when.

The file is renamed, its writer opens a new one, and only once nobody holds the old one any more it is compressed, sealed and
uploaded, read back and compared, and then removed. What a crash leaves behind is told by the names: the next run goes on from
there. Nothing is written beside the log, so a full disk stops nothing. Copying and truncating would lose what is written in
between. Source: logrotate/logrotate#34, #591; fluent/fluent-bit-docs#1770.
"""

import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from hostler.lifecycle.log_archive import LogArchive

_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"
_CUT: Final = re.compile(r"\.\d{8}T\d{6}\.\d{6}Z$")


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationRule:
    """When a file is rotated.

    Attributes:
        most_bytes, most_age_s: a file that is larger, or that was first seen longer ago, is due. settle_s: how long a cut file must
            rest before it counts as closed: for writers whose open files cannot be seen from here.
        full_ratio: below this free share of its disk, every file is due, the largest first.
        pid_file, reopen_signal: whom to tell to open a new file; None: the writer watches for that itself.
    """

    most_bytes: int = 64 * 1024 * 1024
    most_age_s: float = 86_400
    settle_s: float = 30
    full_ratio: float = 0.05
    pid_file: Path | None = None
    reopen_signal: signal.Signals = signal.SIGHUP


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationFinding:
    """What became of a file: ``action`` is ``cut``, ``shipped``, ``held`` (a writer has it open still) or ``failed``."""

    path: Path
    action: str
    reason: str
    size_bytes: int = 0


@dataclass(slots=True, kw_only=True)
class Rotator:
    """Rotates files into an archive. One at a time for a file: the caller holds a lock.

    Attributes:
        holders: returns how many processes have a file open for writing, as far as can be seen.
        free_ratio: free share of the disk that a path is on. crash: as in ``Fleet``.
        began: when each file was first seen, by device and inode, in seconds; the caller keeps it between runs.
    """

    archive: LogArchive
    rule: RotationRule
    now: Callable[[], datetime]
    holders: Callable[[Path], int]
    free_ratio: Callable[[Path], float]
    crash: Callable[[str], None] = lambda _label: None
    began: dict[str, float] = field(default_factory=dict)

    def rotate(self, path: Path, *, is_forced: bool = False) -> Iterator[RotationFinding]:
        """Goes on with what earlier runs left of a file, cuts it if it is due, and ships what is closed.

        Args:
            is_forced: due, whatever its size and age.
        """
        reason = "asked for" if is_forced else self.why_due(path)
        if reason is not None and (cut := self._cut(path)) is not None:
            yield RotationFinding(path=cut, action="cut", reason=reason)
        for cut in cuts_of(path):
            yield self._ship(path, cut)

    def is_full(self, path: Path) -> bool:
        """True when the disk of the path is nearly full."""
        return self.free_ratio(path) < self.rule.full_ratio

    def why_due(self, path: Path) -> str | None:
        """Returns why a file is to be cut now, in words; None when it is not. An empty file never is."""
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        if stat.st_size == 0:
            return None
        if self.is_full(path):
            return "the disk is nearly full"
        if stat.st_size >= self.rule.most_bytes:
            return f"{stat.st_size} bytes"
        at = self.now().timestamp()
        # Linux keeps the last change of a file, not its beginning.
        age_s = at - self.began.setdefault(f"{stat.st_dev}:{stat.st_ino}", at)
        return f"{age_s:.0f} s old" if age_s >= self.rule.most_age_s else None

    def _cut(self, path: Path) -> Path | None:
        """Renames the file and tells its writer; None when there is nothing to cut."""
        cut = path.with_name(f"{path.name}.{self.now().strftime(_STAMP)}")
        self.crash("cut:before")
        try:
            if cut.exists() or path.stat().st_size == 0:
                return None
            path.rename(cut)
        except FileNotFoundError:
            return None
        self.crash("cut:after")
        return cut

    def _ship(self, path: Path, cut: Path) -> RotationFinding:
        self._tell_writer()
        try:
            before = cut.stat()
            if held := self._why_held(cut, before):
                return RotationFinding(path=cut, action="held", reason=held, size_bytes=before.st_size)
            self.crash("ship:before")
            self.archive.keep(path, cut, crash=self.crash)
            self.crash("remove:before")
            after = cut.stat()
            if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or self.holders(cut):
                return RotationFinding(path=cut, action="held", reason="it was written to meanwhile", size_bytes=after.st_size)
            cut.unlink()
        except Exception as error:  # noqa: BLE001 - whatever store or disk say, the file stays and the next run goes on
            return RotationFinding(path=cut, action="failed", reason=f"{type(error).__name__}: {error}"[:500])
        self.crash("remove:after")
        return RotationFinding(path=cut, action="shipped", reason="read back and equal", size_bytes=before.st_size)

    def _why_held(self, cut: Path, stat: os.stat_result) -> str | None:
        """Returns why a cut file cannot be taken for closed, in words; None when it can."""
        count = self.holders(cut)
        if count:
            return f"{count} processes have it open for writing"
        rest_s = self.now().timestamp() - stat.st_mtime
        return (
            None if rest_s >= self.rule.settle_s else f"last written {rest_s:.0f} s ago, {self.rule.settle_s:.0f} s are waited"
        )

    def _tell_writer(self) -> None:
        if self.rule.pid_file is None:
            return
        try:
            os.kill(int(self.rule.pid_file.read_text(encoding="ascii").split()[0]), self.rule.reopen_signal)
        except (OSError, ValueError, IndexError):
            return  # nobody is there to open a new file: then nobody writes, or the file stays held


def cuts_of(path: Path) -> list[Path]:
    """Returns what was cut off a file and is still there, oldest first."""
    found = [one for one in path.parent.glob(f"{_escaped(path.name)}.*") if _CUT.search(one.name)]
    return sorted(one for one in found if _CUT.sub("", one.name) == path.name)


def is_cut(path: Path) -> bool:
    """True for a name that a rotation made."""
    return _CUT.search(path.name) is not None


def _escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
