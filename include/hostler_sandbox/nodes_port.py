"""The seam between a cloud front (who rents machines) and the node runtime (what a machine is).

A front calls `boot` when a machine reaches running and `kill` when it goes away; the runtime calls back when the guest
powers itself off. Neither side imports the other: both import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

PowerOff = Callable[[str], None]
"""`power_off(node_id)`: the guest ended itself (shutdown, poweroff, halt). Thread-safe, returns at once, never raises."""


class BootError(Exception):
    """A machine could not be booted. The front shows it as a machine that failed its status checks or went away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleCredentials:
    """Short-lived keys of the machine's own role, as the metadata service hands them out.

    Attributes:
        role_name: name under `iam/security-credentials/`.
        expires_at: aware UTC.
    """

    role_name: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """All a runtime needs to bring one machine up.

    Attributes:
        node_id: the cloud's id of the machine (for AWS `i-...`); the key of every later call.
        hostname: the guest's own name, for example `ip-127-1-0-7`.
        address: loopback IPv4 address (127.1.x.y) on which the node's SSH server listens.
        ssh_port: the port, the same for every node of one sandbox.
        user_data: decoded text; "" when none was given.
        instance_type: for example `p5.48xlarge`.
        accelerator_name: as the cloud prints it, for example `H100`; "" for a machine without accelerators.
        accelerator_count: 0 when there are none.
        memory_mib: the guest's main memory.
        region, zone: for example `us-east-1`, `us-east-1a`.
        lifecycle: `on-demand` or `spot`.
        image_id: the image it was started from.
        identity: the instance identity document, as the metadata service serves it; JSON values.
        credentials: None when the machine has no instance profile.
        tags: as they were at launch.
        authorized_key: public key in OpenSSH format that the launch's key pair names; None when none was named.
        boot_fails: the guest must never open its SSH port (fault `boot_failure`).
        image: what is on the image: `bare` (Ubuntu 24.04, nothing added) or `gpu` (driver, toolkit and container runtime in
            place, as the images that vendors make for accelerators have it).
    """

    node_id: str
    hostname: str
    address: str
    ssh_port: int
    user_data: str
    instance_type: str
    accelerator_name: str
    accelerator_count: int
    memory_mib: int
    vcpu_count: int
    region: str
    zone: str
    lifecycle: str
    image_id: str
    identity: Mapping[str, object]
    credentials: RoleCredentials | None
    tags: Mapping[str, str]
    authorized_key: str | None = None
    boot_fails: bool = False
    image: str = "bare"


@runtime_checkable
class NodeRuntime(Protocol):
    """Machines that run. All calls are thread-safe and may come from any thread.

    Calls on a node id that is unknown or gone raise KeyError, except `kill`, which does nothing then.
    """

    def start(self, power_off: PowerOff) -> None:
        """Open what the runtime needs (threads, metadata service). Called once, before the first boot."""

    def boot(self, spec: NodeSpec) -> None:
        """Bring one machine up; returns when its SSH port accepts, or at once when `boot_fails`; user data may go on running.

        Raises:
            BootError: it cannot be brought up; nothing of it stays behind.
        """

    def kill(self, node_id: str) -> None:
        """End the machine: its processes, its port, its files. Idempotent."""

    def freeze(self, node_id: str) -> None:
        """Stop the guest's world: connections hang, nothing answers, nothing proceeds."""

    def thaw(self, node_id: str) -> None:
        """Undo `freeze`."""

    def cut_network(self, node_id: str) -> None:
        """Make the machine unreachable while what runs on it goes on."""

    def mend_network(self, node_id: str) -> None:
        """Undo `cut_network`."""

    def gpu_fault(self, node_id: str, fault: Mapping[str, object]) -> None:
        """Write a hardware fault into the node's state, for example `{"kind": "xid", "xid": 79, "gpu": 3}`.

        Raises:
            ValueError: the fault is not one that the runtime knows; the message says which it knows.
        """

    def fill_disk(self, node_id: str) -> None:
        """Leave no free space on the node's disk."""

    def set_metadata(self, node_id: str, path: str, value: str | None) -> None:
        """Serve `value` under `latest/meta-data/<path>` to this node; None takes the entry away (404)."""

    def metadata_url(self) -> str:
        """Base URL of the metadata service, "" when there is none."""

    def close(self) -> None:
        """End every node and every process that this runtime started. Idempotent."""


class NoNodes:
    """A runtime whose machines never run anything: for tests of the wire alone. It remembers what it was told.

    Attributes:
        alive: node id -> spec, of the machines booted and not killed.
        calls: `(order, node_id)` in the order received.
    """

    def __init__(self) -> None:
        self.alive: dict[str, NodeSpec] = {}
        self.calls: list[tuple[str, str]] = []
        self.metadata: dict[tuple[str, str], str] = {}
        self.power_off: PowerOff = lambda _node_id: None

    def start(self, power_off: PowerOff) -> None:
        """Keep the callback, so that a test can power a machine off."""
        self.power_off = power_off

    def boot(self, spec: NodeSpec) -> None:
        """Remember the machine as alive."""
        self.calls.append(("boot", spec.node_id))
        self.alive[spec.node_id] = spec

    def kill(self, node_id: str) -> None:
        """Forget the machine."""
        self.calls.append(("kill", node_id))
        self.alive.pop(node_id, None)

    def freeze(self, node_id: str) -> None:
        """Remember the order."""
        self._order("freeze", node_id)

    def thaw(self, node_id: str) -> None:
        """Remember the order."""
        self._order("thaw", node_id)

    def cut_network(self, node_id: str) -> None:
        """Remember the order."""
        self._order("cut_network", node_id)

    def mend_network(self, node_id: str) -> None:
        """Remember the order."""
        self._order("mend_network", node_id)

    def gpu_fault(self, node_id: str, fault: Mapping[str, object]) -> None:
        """Remember the order and the kind of fault."""
        self._order(f"gpu_fault:{fault.get('kind')}", node_id)

    def fill_disk(self, node_id: str) -> None:
        """Remember the order."""
        self._order("fill_disk", node_id)

    def set_metadata(self, node_id: str, path: str, value: str | None) -> None:
        """Remember the entry."""
        self._order("set_metadata", node_id)
        if value is None:
            self.metadata.pop((node_id, path), None)
        else:
            self.metadata[node_id, path] = value

    def metadata_url(self) -> str:
        """Answer that there is no metadata service."""
        return ""

    def close(self) -> None:
        """Forget every machine."""
        self.alive.clear()

    def _order(self, order: str, node_id: str) -> None:
        if node_id not in self.alive:
            raise KeyError(node_id)
        self.calls.append((order, node_id))
