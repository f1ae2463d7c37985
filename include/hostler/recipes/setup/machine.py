"""The machine as the steps see it: programs run, files read and written, reboots."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, NoReturn

MOST_REBOOTS = 2
REBOOT_STATUS = 75
"""EX_TEMPFAIL: not done, start me again. Source: sysexits.h."""


class StepError(Exception):
    """A step cannot be done; the text says what was tried and what came back."""


class RebootNeeded(Exception):  # noqa: N818 - a call for something, not an error
    """The machine must reboot before the step can be done; the text says why."""


@dataclass(frozen=True)
class Done:
    """What a program left; ``code`` 127: there is no such program, 124: it did not end in time."""

    code: int
    output: str

    @property
    def last_line(self) -> str:
        """The last line that says something, for messages."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"exit status {self.code}"


class Machine:
    """Runs programs and keeps files. ``home`` is ours, ``root`` goes before absolute paths of the system's files."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.root = environ.get("HOSTLER_ROOT", "")
        self.home = Path(environ.get("HOSTLER_HOME") or "/opt/hostler")
        self._reboot_wait_s = float(environ.get("HOSTLER_REBOOT_WAIT_S") or 60)
        self._sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]

    def path(self, absolute: str) -> Path:
        """Returns where a system file lies."""
        return Path(self.root + absolute)

    def run(self, *argv: str, as_root: bool = False, timeout_s: float = 60, stdin: bytes | None = None) -> Done:
        """Runs a program and returns what it left; never raises for what the program does."""
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        command = [*(self._sudo if as_root else []), *argv]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as given:  # no pipes: a hung child may keep them open
            given.write(stdin or b"")
            given.seek(0)
            try:
                child = subprocess.Popen(command, stdin=given, stdout=out, stderr=subprocess.STDOUT, env=env)
            except OSError as error:
                return Done(127, f"{command[0]}: {error.strerror}")
            try:
                code = child.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                child.kill()
                code = 124
            out.seek(0)
            output = out.read().decode("utf-8", "replace")
        return Done(code, output + (f"\n{argv[0]}: no end within {timeout_s:.0f} s" if code == 124 else ""))  # noqa: PLR2004 - timeout(1)

    def must(self, *argv: str, as_root: bool = True, timeout_s: float = 60) -> Done:
        """Runs a program that has to succeed. Raises StepError with its last words."""
        print("  $", " ".join(argv), flush=True)
        done = self.run(*argv, as_root=as_root, timeout_s=timeout_s)
        if done.code != 0:
            tail = "\n".join(f"  | {line}" for line in done.output.splitlines()[-20:])
            print(tail, flush=True)
            raise StepError(f"{' '.join(argv)}: {done.last_line}")
        return done

    def has(self, program: str) -> bool:
        """True when the program is on the PATH."""
        return shutil.which(program) is not None

    def system_python(self) -> str:
        """Returns the system's own Python, also when this program runs in our virtual environment."""
        others = [
            folder for folder in os.environ.get("PATH", "").split(os.pathsep) if Path(folder) != self.home / "venv" / "bin"
        ]
        return shutil.which("python3", path=os.pathsep.join(others)) or sys.executable

    def read(self, absolute: str) -> str:
        """Returns a system file's text; empty when there is none or it may not be read."""
        try:
            return self.path(absolute).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def write(self, absolute: str, text: str) -> None:
        """Writes a system file, making its folder. Raises StepError."""
        path = self.path(absolute)
        if not path.parent.is_dir():
            self.must("mkdir", "-p", str(path.parent))
        done = self.run("tee", str(path), as_root=True, stdin=text.encode())
        if done.code != 0:
            raise StepError(f"{path}: {done.last_line}")

    def make_home(self) -> None:
        """Makes our folder, owned by who runs the setup. Raises StepError."""
        if not os.access(self.home, os.W_OK):
            self.must("mkdir", "-p", str(self.home))
            self.must("chown", f"{os.getuid()}:{os.getgid()}", str(self.home))
        (self.home / "setup").mkdir(exist_ok=True)

    def boot_id(self) -> str:
        """Returns the id of this boot."""
        known = "/proc/sys/kernel/random/boot_id"
        return (self.read(known) or Path(known).read_text(encoding="ascii")).strip()

    def state(self) -> dict[str, Any]:
        """Returns what earlier runs of the setup noted; empty at first."""
        try:
            found = json.loads((self.home / "setup" / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def keep(self, name: str, content: Mapping[str, Any]) -> None:
        """Writes one of our own JSON files whole."""
        path = self.home / "setup" / name
        temporary = path.with_name(f".{name}.{os.getpid()}")
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        temporary.replace(path)

    def reboot(self, reason: str) -> NoReturn:
        """Notes the reboot, calls for it, and leaves with status 75. Raises StepError when there were too many."""
        state = self.state()
        pending = state.get("reboot_boot_id") == self.boot_id()  # called for in this very boot, and it has not come
        count = int(state.get("reboots", 0)) + (0 if pending else 1)
        if count > MOST_REBOOTS:
            raise StepError(f"another reboot is needed after {MOST_REBOOTS} ({reason}): give this node up")
        noted = {"reboots": count, "reboot_boot_id": self.boot_id(), "reason": reason, "at_s": round(time.time())}
        self.keep("state.json", {**state, **noted})
        print(f"REBOOT {count} of at most {MOST_REBOOTS}: {reason}", flush=True)
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(REBOOT_STATUS))
        self._call_reboot()
        time.sleep(self._reboot_wait_s)
        raise SystemExit(REBOOT_STATUS)

    def _call_reboot(self) -> None:
        for argv in (("shutdown", "-r", "now"), ("reboot",), ("systemctl", "reboot")):
            done = self.run(*argv, as_root=True, timeout_s=30)
            if done.code == 0:
                return
        raise StepError(f"the machine does not reboot: {done.last_line}")
