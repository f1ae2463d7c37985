"""The seam between the clouds' wire fronts and the nodes: what a front asks of the node runtime.

A front boots a node for each machine that its cloud has started, and tells the runtime of stops, notices and faults. The
runtime calls back when a guest powered itself off. All methods may be called from any thread and return when the thing is done.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


class NodeError(Exception):
    """The runtime cannot do what was asked; the message says why."""


class NodeUnknownError(NodeError):
    """No such node, or it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """A machine to boot.

    Attributes:
        node_id: the cloud's id, unique in this sandbox; also the folder's name.
        accelerator, accelerator_count: short name as in the catalogue (``H100``) and how many; None and 0 for a plain machine.
        image_id, image: the cloud's id, and what is on it: ``bare`` (Ubuntu 24.04, nothing added) or ``gpu`` (driver, toolkit
            and container runtime in place, as vendors' GPU images have it).
        user_data: cloud-config text, decoded; empty when there is none.
        role, credentials: name of the instance's role and what gives its present credentials (AccessKeyId, SecretAccessKey,
            Token, Expiration); None when the machine has no role.
        boot_s: seconds from ``boot`` to the open SSH port.
        is_boot_broken: the machine runs for the cloud, but its SSH never opens.
    """

    node_id: str
    instance_type: str = "m7i.large"
    region: str = "us-east-1"
    zone: str = "us-east-1a"
    account_id: str = "123456789012"
    accelerator: str | None = None
    accelerator_count: int = 0
    image_id: str = "ami-00000000000000000"
    image: str = "bare"
    user_data: str = ""
    hostname: str = ""
    is_spot: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    role: str | None = None
    credentials: Callable[[], Mapping[str, str]] | None = None
    disk_gib: int = 100
    boot_s: float = 0.0
    is_boot_broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """How a command ended. ``exit_code`` is negative when a signal ended it."""

    exit_code: int
    stdout: str
    stderr: str


class NodeRuntimePort(Protocol):
    """What fronts and the control API ask of nodes."""

    ssh_port: int

    def boot(self, spec: NodeSpec) -> str:
        """Boots a node and returns its loopback address at once; SSH opens ``boot_s`` later. Raises NodeError."""
        ...

    def stop(self, node_id: str) -> None:
        """Powers off: processes end, disk and address stay. Doing it twice is fine. Raises NodeUnknownError."""
        ...

    def start(self, node_id: str) -> None:
        """Boots a stopped node again from its disk. Raises NodeUnknownError."""
        ...

    def reboot(self, node_id: str) -> None:
        """Restarts: processes end, SSH is away for a moment, the boot id changes. Raises NodeUnknownError."""
        ...

    def kill(self, node_id: str) -> None:
        """Terminates: no process, no port, no disk is left on return. An unknown id is no error."""
        ...

    def run(self, node_id: str, command: str, timeout_s: float = 60) -> CommandOutcome:
        """Runs a shell command as root, as a cloud's run-command would. Raises NodeUnknownError, TimeoutError."""
        ...

    def set_tags(self, node_id: str, tags: Mapping[str, str]) -> None:
        """Replaces the tags that the metadata service shows. Raises NodeUnknownError."""
        ...

    def notice(self, node_id: str, action: str | None, at: datetime | None) -> None:
        """Shows an interruption notice: ``terminate``, ``stop`` or ``hibernate`` at a time; ``rebalance`` (the recommendation); None takes all back."""
        ...

    def fault(self, node_id: str, kind: str, **details: str | float) -> None:
        """Injects a fault (``hostler_sandbox.nodes.faults`` lists them). Raises NodeUnknownError, NodeError for an unknown kind."""
        ...

    def node_ids(self) -> tuple[str, ...]:
        """Returns all nodes that are not killed, by id."""
        ...

    def close(self) -> None:
        """Ends every node and every process they started."""
        ...
