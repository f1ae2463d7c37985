"""Where the agent keeps what on a node, and how it writes it: whole or not at all, readable by its own user only."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from pathlib import Path
from typing import Any, Iterator

PROTOCOL = 1
DEFAULT_HOME = "/opt/hostler"
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_STEP = re.compile(r"step-([0-9]{1,15})")


class BadRequestError(Exception):
    """The order names something that is not allowed; nothing was done."""


class NodeHome:
    """The agent's folder on the node (``$HOSTLER_HOME``)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.agent = root / "agent"
        self.jobs = root / "jobs"
        self.node_file = self.agent / "node.json"
        self.expiry_file = self.agent / "expiry.json"
        self.contact_file = self.agent / "contact.json"
        self.notice_file = self.agent / "notice.json"
        self.daemon_file = self.agent / "daemon.json"
        self.daemon_lock = self.agent / "daemon.lock"
        self.ship_lock = self.agent / "ship.lock"
        self.ship_file = self.agent / "ship.json"
        self.spool = self.agent / "spool"

    @classmethod
    def from_environment(cls) -> NodeHome:
        """Returns the folder that ``HOSTLER_HOME`` names, or the usual one."""
        return cls(Path(os.environ.get("HOSTLER_HOME") or DEFAULT_HOME))

    def job(self, job_id: object) -> JobFolder:
        """Returns a job's folder. Raises BadRequestError for an id that is no plain name."""
        return JobFolder(self.jobs / plain_id("job_id", job_id))

    def all_jobs(self) -> list[JobFolder]:
        """Returns the folders of all jobs, by name."""
        if not self.jobs.is_dir():
            return []
        return [JobFolder(path) for path in sorted(self.jobs.iterdir()) if path.is_dir() and _ID.fullmatch(path.name)]

    def index_file(self, lease_id: str) -> Path:
        """Returns where the list of shipped objects of a lease lies."""
        return self.agent / ("index-{}.json".format(plain_id("lease_id", lease_id)))

    def node(self) -> dict[str, Any]:
        """Returns what ``configure`` was told; empty before."""
        return read_json(self.node_file) or {}


class JobFolder:
    """One job's files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.job_id = root.name
        self.lock_file = root / "lock"
        self.order_file = root / "order.json"
        self.supervisor_file = root / "supervisor.json"
        self.process_file = root / "process.json"
        self.state_file = root / "state.json"
        self.report_file = root / "report.json"
        self.heartbeat_file = root / "heartbeat.json"
        self.stop_file = root / "stop.json"
        self.checkpoint_request = root / "checkpoint.request"
        self.rotate_request = root / "rotate.request"
        self.logs = root / "logs"
        self.code = root / "code"
        self.checkpoints = root / "checkpoints"
        self.output = root / "output"
        self.metrics_file = root / "metrics.jsonl"
        self.agent_errors = root / "supervisor.err"

    def steps(self) -> list[tuple[int, Path]]:
        """Returns the complete checkpoints as (step, folder), newest first."""
        if not self.checkpoints.is_dir():
            return []
        named = ((_STEP.fullmatch(path.name), path) for path in self.checkpoints.iterdir())
        return sorted(((int(match.group(1)), path) for match, path in named if match and path.is_dir()), reverse=True)


def plain_id(field: str, value: object) -> str:
    """Returns the id. Raises BadRequestError when it could mean another folder."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise BadRequestError(f"{field}: 1 to 128 letters, digits, dots, dashes and underscores are allowed")
    return value


def private_folder(path: Path) -> Path:
    """Makes a folder for this user alone, where missing, and returns it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_whole(path: Path, content: bytes, *, mode: int = 0o600, is_durable: bool = True) -> None:
    """Writes a file so that a power cut leaves the old or the new one. Not durable: the old one may come back."""
    private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        handle = os.open(str(temporary), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as target:
            target.write(content)
            target.flush()
            if is_durable:
                os.fsync(target.fileno())
        os.replace(str(temporary), str(path))  # noqa: PTH105 - one call for both Path and text callers
        if is_durable:
            _sync_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _sync_folder(path: Path) -> None:
    handle = os.open(str(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, document: object, *, is_durable: bool = True) -> None:
    """Writes a JSON document whole."""
    write_whole(path, json.dumps(document, sort_keys=True).encode(), is_durable=is_durable)


def read_json(path: Path) -> dict[str, Any] | None:
    """Returns the document; None when there is none or when it can't be read as one."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Holds a lock file; yields False, holding nothing, when ``wait`` is off and another process has it."""
    private_folder(path.parent)
    handle = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def boot_id() -> str:
    """Returns the kernel's id of this boot; monotonic times of another boot mean nothing."""
    # HOSTLER_ROOT goes before the system's paths where the machine is not the whole of its host (as for the setup recipe).
    for root in filter(None, (os.environ.get("HOSTLER_ROOT"), "/")):
        with contextlib.suppress(OSError):
            return (Path(root) / "proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return "unknown"


def stamp() -> dict[str, Any]:
    """Returns now, as monotonic seconds of this boot."""
    return {"boot_id": boot_id(), "monotonic_s": time.monotonic()}


def age_s(then: dict[str, Any] | None) -> float | None:
    """Returns seconds since a ``stamp``; None without one or when it is from another boot."""
    if not then or then.get("boot_id") != boot_id() or not isinstance(then.get("monotonic_s"), (int, float)):
        return None
    return max(0.0, time.monotonic() - float(then["monotonic_s"]))
