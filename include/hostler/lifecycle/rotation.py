"""One run of the log rotation: the files that fleet.yaml names on this machine, and the logs of the nodes."""

import asyncio
import fcntl
import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hostler.lifecycle.events import make_event, words_of
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.rotate import RotationFinding, Rotator, cuts_of, is_cut
from hostler.lifecycle.slots import live_nodes
from hostler.model.enums import LeaseState, NodeState
from hostler.model.lease import Node
from hostler.reach.port import ReachError

AT_ONCE: Final = 16
"""Nodes that are asked to ship side by side: each of them uploads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationReport:
    """What one run did.

    Attributes:
        nodes_shipped: nodes whose logs are all in the store. node_errors: those that could not ship, in words.
        is_disk_full: a disk is nearly full, and what lies on it could not all be shipped: a person has to look.
        is_locked_out: another rotation runs on this machine; nothing was done here.
    """

    findings: tuple[RotationFinding, ...]
    nodes_shipped: int
    node_errors: tuple[str, ...]
    is_disk_full: bool
    is_locked_out: bool = False

    @property
    def failures(self) -> tuple[str, ...]:
        """What did not go well, in words; a file that its writer still holds is no failure."""
        return (*(f"{one.path}: {one.reason}" for one in self.findings if one.action == "failed"), *self.node_errors)


async def rotate_logs(
    fleet: Fleet, rotator: Callable[[Path], Rotator], patterns: Sequence[str], *, who: str, lock: Path, wants_nodes: bool
) -> RotationReport:
    """Rotates the files of ``patterns`` (globs), and has every node ship its logs.

    Args:
        rotator: gives the rotator with the rule of a file. lock: a file that one rotation of this machine holds.
    """
    with _held(lock) as is_mine:
        findings, is_full = await asyncio.to_thread(_rotate_all, rotator, patterns) if is_mine else ([], False)
    shipped, errors = await _ship_nodes(fleet) if wants_nodes else (0, [])
    report = RotationReport(
        findings=tuple(findings),
        nodes_shipped=shipped,
        node_errors=tuple(errors),
        is_disk_full=is_full and any(one.action in {"failed", "held"} for one in findings),
        is_locked_out=not is_mine,
    )
    if report.is_disk_full:
        why = "a disk is nearly full and not all logs on it could be shipped; nothing unshipped was removed"
        event = make_event(None, who, "log_rotation.disk_full", why, first=next(iter(report.failures), None))
        await fleet.offload(lambda: fleet.ledger.append_events([event]))
    return report


def files_of(patterns: Sequence[str]) -> list[Path]:
    """Returns the files to rotate, the largest first: also those of which only what was cut off is left."""
    found: set[Path] = set()
    for pattern in patterns:
        for name in glob.glob(os.path.expanduser(pattern), recursive=True):  # noqa: PTH111, PTH207 - patterns are absolute
            path = Path(name)
            if path.is_file() and not path.is_symlink():
                found.add(path.with_name(_whole_name(path.name)) if is_cut(path) else path)
        # A pattern such as *.log does not meet what was cut off.
        for name in glob.glob(f"{os.path.expanduser(pattern)}.*", recursive=True):  # noqa: PTH111, PTH207 - as above
            if is_cut(Path(name)) and Path(name).is_file():
                found.add(Path(name).with_name(_whole_name(Path(name).name)))
    return sorted(found, key=lambda path: (-_size(path), path))


def _rotate_all(rotator: Callable[[Path], Rotator], patterns: Sequence[str]) -> tuple[list[RotationFinding], bool]:
    findings: list[RotationFinding] = []
    is_full = False
    for path in files_of(patterns):
        mine = rotator(path)
        is_full = is_full or mine.is_full(path.parent)
        findings += mine.rotate(path)
    return findings, is_full


def _whole_name(name: str) -> str:
    return name.rsplit(".", 2)[0]  # the stamp of a cut has one point


def _size(path: Path) -> int:
    return sum(one.stat().st_size for one in (path, *cuts_of(path)) if one.exists())


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


async def _ship_nodes(fleet: Fleet) -> tuple[int, list[str]]:
    """Has each node cut the logs of its jobs and ship them; the agent seals, uploads and compares by itself."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(node: Node) -> str | None:
        async with gate:
            try:
                await fleet.nodes.flush(node, node.lease_id)
            except ReachError as error:
                return f"{node.node_name}: {words_of(error)}"
        return None

    answers = await asyncio.gather(*(one(node) for node in await fleet.offload(lambda: _nodes(fleet))))
    errors = [answer for answer in answers if answer is not None]
    return len(answers) - len(errors), errors


def _nodes(fleet: Fleet) -> list[Node]:
    leases = fleet.ledger.list_leases(LeaseState.ACTIVE, LeaseState.UNATTENDED)
    views = [fleet.ledger.view(lease.lease_id) for lease in leases]
    return [node for view in views for node in live_nodes(view) if node.state is NodeState.INITIALIZED]
