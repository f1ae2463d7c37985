"""What a node runtime may be able to do beside its port: ask ``isinstance``."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class SupportsPower(Protocol):
    """Nodes that can be stopped, resumed and rebooted. Calls raise KeyError for a node that is unknown or gone."""

    def stop(self, node_id: str) -> None:
        """Powers off: processes end, disk and address stay."""

    def resume(self, node_id: str) -> None:
        """Boots a stopped node again from its disk."""

    def reboot(self, node_id: str) -> None:
        """Restarts: processes end, SSH is away for a moment."""


@runtime_checkable
class SupportsFreeDisk(Protocol):
    """Nodes whose full disk can be emptied again."""

    def free_disk(self, node_id: str) -> None:
        """Undoes ``fill_disk``."""
