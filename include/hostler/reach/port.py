"""Transport: run, put, get on a node. ``reach.ssh`` is the first one; cloud run-command and a pull mailbox fit the same port.

Node control: what the lifecycle asks of a node. ``recipes.control`` builds it from a transport and the agent; the simulator
has its own. The lifecycle sees only ``NodeControl``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from hostler.model.enums import JobState
from hostler.model.lease import Node


class ReachError(Exception):
    """The node could not be asked: time-out, refused, cut, or a wrong host key. Says nothing of its health."""


class HostKeyMismatchError(ReachError):
    """Somebody else answers at the node's address: nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where and how to reach one node.

    Attributes:
        host_key: the pinned public key, OpenSSH format. through: jump host, with its own pinned key; None: directly.
    """

    host: str
    port: int
    user: str
    host_key: str
    through: "Target | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command left. Output is bytes decoded as UTF-8 with replacement, cut at the transport's limit."""

    exit_code: int
    stdout: str
    stderr: str


class Transport(Protocol):
    """Runs commands and moves small files; many nodes at once, bounded; connections are reused while it is open."""

    async def run(self, target: Target, command: str, *, timeout_s: float, stdin: bytes | None = None) -> CommandResult:
        """Runs a shell command. Secrets go by ``stdin``, never in ``command``. Raises ReachError."""
        ...

    async def put(self, target: Target, content: bytes, path: str, *, mode: int = 0o644, timeout_s: float = 60) -> None:
        """Writes a file whole (temporary name, then rename), making its folder. Raises ReachError."""
        ...

    async def get(self, target: Target, path: str, *, timeout_s: float = 60) -> bytes:
        """Reads a file. Raises FileNotFoundError or ReachError."""
        ...

    async def close(self) -> None:
        """Closes all connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """One job for one node's agent.

    Attributes:
        job_id: identity; starting the same id again re-attaches, never starts twice.
        attempt_token: only its holder may stop the job.
        argv: the command. env: its plain environment. secrets: environment that is handed over by standard input only.
        files: staged before the start, path relative to the job's code folder -> content.
        rank, world_size, master_host: gang variables; the agent sets RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, NODE_RANK...
        restore_step: before the start the agent fetches every checkpoint object of this step that any node shipped,
            so that all ranks resume from the same step; None: start afresh.
        expires_in_s: the dead man's switch from now on; the agent powers the node off when it fires.
    """

    job_id: str
    attempt_token: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    rank: int = 0
    world_size: int = 1
    master_host: str = "127.0.0.1"
    master_port: int = 29500
    restore_step: int | None = None
    expires_in_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """What the agent says of a job.

    Attributes:
        heartbeat_age_s: seconds since the job last showed life, by the node's monotonic clock; None before the first.
        step, resumed_from_step, metrics, weights_sha256: last values the workload reported.
        shipped_step: step of the last checkpoint that is safely in the store; None when there is none.
        notice: the interruption notice the node itself has seen, in words; None when there is none.
        log_tail: the last lines, for people.
    """

    job_id: str
    state: JobState
    exit_code: int | None = None
    heartbeat_age_s: float | None = None
    step: int = 0
    resumed_from_step: int = 0
    metrics: tuple[tuple[str, float], ...] = ()
    weights_sha256: str | None = None
    shipped_step: int | None = None
    notice: str | None = None
    log_tail: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupTarget:
    """Where the agent of one lease ships to and with which key.

    Attributes:
        uri: ``file:///...`` or ``s3://bucket/prefix``; objects go under ``<uri>/<lease_id>/<node_name>/``.
        endpoint_url, region: for S3; None means the cloud's own.
        data_key: 32 bytes, plain; goes to the node by standard input only. key_id: names the wrapped key in the manifest.
    """

    uri: str
    data_key: bytes = field(repr=False)
    key_id: str
    endpoint_url: str | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedObject:
    """One encrypted object a node shipped: key under the lease's prefix, hashes of cipher and plain bytes, sizes, kind."""

    key: str
    kind: str
    sha256: str
    plain_sha256: str
    size_bytes: int
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSample:
    """One look of the agent at its node. None: it could not be read.

    Attributes:
        age_s: by the node's monotonic clock, 0 or more.
        utilisation_ratios: of each accelerator, 0 to 1, None in it: not told (as under MIG); empty: none told.
        process_count: processes that hold an accelerator. login_count: sessions with a terminal. job_count: jobs of the agent.
        cpu_ratio: busy share of the host's CPU time since the sample before, 0 to 1.
    """

    age_s: float
    utilisation_ratios: tuple[float | None, ...] = ()
    process_count: int | None = None
    login_count: int | None = None
    job_count: int | None = None
    cpu_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRecord:
    """What a node did. ``samples``: of this boot, oldest first, the last one taken for this answer. ``every_s``: their distance."""

    samples: tuple[LoadSample, ...]
    every_s: float


@runtime_checkable
class NodeLoad(Protocol):
    """Nodes that can tell what they did."""

    async def read_load(self, node: Node, window_s: float) -> LoadRecord:
        """Returns the samples of the last ``window_s`` seconds. Raises ReachError."""
        ...


class NodeControl(Protocol):
    """What the lifecycle asks of nodes. Every call is idempotent and raises ReachError when the node does not answer."""

    async def is_up(self, node: Node) -> bool:
        """True when the node answers with its pinned host key. False (never an error) when it does not."""
        ...

    async def start_setup(self, node: Node, job_id: str, options: Mapping[str, str]) -> JobStatus:
        """Puts the agent there, then starts the setup recipe as its job ``job_id``; re-attaches when it is there already."""
        ...

    async def poll_setup(self, node: Node, job_id: str) -> JobStatus:
        """Returns the setup's status. ``succeeded`` only after the recipe verified its own work."""
        ...

    async def probe(self, node: Node) -> Mapping[str, Any]:
        """Returns the probe's document (``recipes.probe``), version 1."""
        ...

    async def start_job(self, node: Node, order: JobOrder, backup: BackupTarget | None) -> JobStatus:
        """Starts the job, or re-attaches to it."""
        ...

    async def poll_job(self, node: Node, job_id: str) -> JobStatus:
        """Returns the job's status; state ``missing`` when the node knows no such job."""
        ...

    async def stop_job(self, node: Node, job_id: str, attempt_token: str, *, checkpoint: bool) -> JobStatus:
        """Asks for a checkpoint when wanted, then ends the job. A token of another attempt changes nothing."""
        ...

    async def flush(self, node: Node, lease_id: str) -> Sequence[ShippedObject]:
        """Ships what is not yet shipped (checkpoints, logs) and returns all objects of this node, by key."""
        ...

    async def renew(self, node: Node, expires_in_s: float) -> None:
        """Sets the dead man's switch anew."""
        ...

    async def close(self) -> None:
        """Closes connections."""
        ...


@runtime_checkable
class NodeLogs(Protocol):
    """Log reading for the command line."""

    async def read_log(self, node: Node, job_id: str, offset: int) -> tuple[bytes, int]:
        """Returns log bytes from ``offset`` on and the next offset. Raises ReachError."""
        ...


def target_of(node: Node) -> Target:
    """Returns where to reach the node. Raises ReachError when the cloud has named no address or no host key is pinned yet."""
    if node.address is None or node.host_key is None:
        raise ReachError(f"{node.node_name}: no address or no pinned host key yet")
    return Target(host=node.address, port=node.port, user=node.user, host_key=node.host_key)
