"""What a PostgreSQL server's own file says about it, and whether that is true."""

import os
from pathlib import Path
from typing import Final

_PID, _PORT, _STATUS = 0, 3, 7
"""Lines of postmaster.pid. Source: PostgreSQL 18, src/include/utils/pidfile.h (there counted from 1)."""

_READY: Final = "ready"


class PidFile:
    """``postmaster.pid`` of a data folder; read again at each question."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.path = data / "postmaster.pid"

    @property
    def pid(self) -> int | None:
        """The process id in the file; None without one."""
        return self._number(_PID)

    @property
    def port(self) -> int | None:
        """The port in the file; None without one."""
        return self._number(_PORT)

    def is_ready(self) -> bool:
        """True when the server lives and takes connections."""
        lines = self._lines()
        return len(lines) > _STATUS and lines[_STATUS].strip() == _READY and self.is_alive()

    def is_alive(self) -> bool:
        """True when the process lives and is this folder's server, not one that got a dead server's number."""
        pid = self.pid
        if pid is None:
            return False
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        if not Path("/proc/self/cwd").exists():
            return True
        try:
            # A PostgreSQL server works inside its data folder.
            return Path(f"/proc/{pid}/cwd").readlink() == self.data.resolve()
        except OSError:
            return False

    def _number(self, line: int) -> int | None:
        try:
            return int(self._lines()[line])
        except (IndexError, ValueError):
            return None

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text().splitlines()
        except (OSError, UnicodeDecodeError):
            return []
