"""Faults that a node can be given, by name. What each really does is said beside it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from hostler_sandbox.nodes.machine import Machine
from hostler_sandbox.nodes_port import NodeError

Details = Mapping[str, str | float]


async def _freeze(machine: Machine, _details: Details) -> None:
    """Real: every process is stopped (SIGSTOP), the SSH port stays open and nobody answers."""
    await machine.freeze()


async def _thaw(machine: Machine, _details: Details) -> None:
    """Undoes ``freeze``."""
    await machine.thaw()


async def _cut(machine: Machine, _details: Details) -> None:
    """SSH is refused and open connections are dropped; processes go on. Not covered: what the node itself calls still answers."""
    await machine.cut_off()


async def _mend(machine: Machine, _details: Details) -> None:
    """Undoes ``cut``."""
    machine.mend()


async def _disk_full(machine: Machine, _details: Details) -> None:
    """Real for writing: no file of the node can grow, by a limit on its processes (EFBIG, where a full disk says ENOSPC; by SFTP
    ENOSPC). Shown: ``df`` on the node. Not covered: ``statvfs`` shows the host's disk.
    """
    machine.fill_disk(is_full=True)


async def _disk_freed(machine: Machine, _details: Details) -> None:
    """Undoes ``disk_full``."""
    machine.fill_disk(is_full=False)


KINDS: Final[dict[str, Callable[[Machine, Details], Awaitable[None]]]] = {
    "freeze": _freeze,
    "thaw": _thaw,
    "cut": _cut,
    "mend": _mend,
    "disk_full": _disk_full,
    "disk_freed": _disk_freed,
}


async def inject(machine: Machine, kind: str, details: Details) -> None:
    """Injects one fault. Raises NodeError for an unknown kind or detail."""
    if kind not in KINDS:
        raise NodeError(f"kind: {kind!r}: allowed: {', '.join(KINDS)}")
    await KINDS[kind](machine, details)
