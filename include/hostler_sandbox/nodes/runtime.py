"""The node runtime: boots, faults and ends nodes. One event loop in one background thread serves all of them."""

import asyncio
import itertools
import json
import shutil
import site
import socket
import sysconfig
import threading
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from hostler_sandbox.nodes import faults, layout, nvml, processes
from hostler_sandbox.nodes import metadata as imds
from hostler_sandbox.nodes.guest.state import FACTS_FILE
from hostler_sandbox.nodes.machine import Machine, Site
from hostler_sandbox.nodes.processes import Mark
from hostler_sandbox.nodes.ssh_server import listening_socket
from hostler_sandbox.nodes_port import CommandOutcome, NodeError, NodeSpec, NodeUnknownError

_T = TypeVar("_T")
_CALL_S: Final = 60.0
_ANCHOR: Final = "127.1.0.1"
"""Holds the two ports for the runtime's life: no second sandbox can choose them. Nodes get the addresses after it."""


class NodeRuntime:
    """Implements ``NodeRuntimePort``.

    Args:
        folder: where nodes and shared programs lie; made when missing. Processes of nodes that an earlier sandbox left there
            are ended.
        ssh_port: the port of all nodes; 0 chooses a free one.
        on_power_off: called in a thread of its own with the id of a node whose guest powered itself off.
        use_nvml: build the NVML library; without it (or without a C compiler) programs find no library, and only
            ``nvidia-smi`` reports. ``nvml_library`` says which it is.

    Raises:
        NodeError: the port is taken.
    """

    def __init__(
        self, folder: Path, *, ssh_port: int = 0, on_power_off: Callable[[str], None] | None = None, use_nvml: bool = True
    ) -> None:
        self._folder = folder.resolve()
        self._on_power_off = on_power_off
        self._machines: dict[str, Machine] = {}
        self._numbers = itertools.count(2)
        self._is_closed = False
        shared, nodes = self._folder / "shared", self._folder / "nodes"
        nodes.mkdir(parents=True, exist_ok=True)
        _clear_away(nodes)
        layout.make_shared_programs(shared, Path(__file__).parent / "guest")
        self.nvml_library: Path | None = nvml.build(shared) if use_nvml else None
        self._anchors = _hold_ports(ssh_port)
        self.ssh_port, metadata_port = (anchor.getsockname()[1] for anchor in self._anchors)
        self._site = Site(
            folder=nodes,
            shared=shared,
            ssh_port=self.ssh_port,
            metadata_port=metadata_port,
            nvml_library=self.nvml_library,
            python_sources=_python_sources(),
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sandbox-nodes", daemon=True)
        self._thread.start()

    def boot(self, spec: NodeSpec) -> str:
        """Boots a node and returns its loopback address at once; SSH opens ``boot_s`` later. Raises NodeError."""
        return self._call(self._boot(spec))

    async def _boot(self, spec: NodeSpec) -> str:
        if spec.node_id in self._machines or "/" in spec.node_id or spec.node_id.startswith("."):
            raise NodeError(f"node_id: {spec.node_id!r}: taken, or no plain name")
        number = next(self._numbers)
        machine = Machine(spec, f"127.1.{number // 254 % 256}.{number % 254 + 1}", self._site, self._powered_off)
        self._machines[spec.node_id] = machine
        try:
            machine.create()
            await machine.power_on(is_first=True, boot_s=spec.boot_s)
        except BaseException:
            del self._machines[spec.node_id]
            await machine.erase()
            raise
        return machine.address

    def stop(self, node_id: str) -> None:
        """Powers off: processes end, disk and address stay. Doing it twice is fine. Raises NodeUnknownError."""
        self._call(self._machine(node_id).power_off())

    def start(self, node_id: str) -> None:
        """Boots a stopped node again from its disk. Raises NodeUnknownError."""
        machine = self._machine(node_id)
        if not machine.is_on:
            self._call(machine.power_on(is_first=False, boot_s=machine.spec.boot_s))

    def reboot(self, node_id: str) -> None:
        """Restarts: processes end, SSH is away for a moment, the boot id changes. Raises NodeUnknownError."""
        self._call(self._machine(node_id).reboot())

    def kill(self, node_id: str) -> None:
        """Terminates: no process, no port, no disk is left on return. An unknown id is no error."""
        machine = self._machines.pop(node_id, None)
        if machine:
            self._call(self._end(machine))

    @staticmethod
    async def _end(machine: Machine) -> None:
        await machine.power_off()
        await machine.erase()

    def run(self, node_id: str, command: str, timeout_s: float = 60) -> CommandOutcome:
        """Runs a shell command as root, as a cloud's run-command would. Raises NodeUnknownError, TimeoutError."""
        ended = self._call(self._machine(node_id).run(command, timeout_s), timeout_s + _CALL_S)
        stdout, stderr = (text.decode("utf-8", "replace") for text in (ended.stdout, ended.stderr))
        return CommandOutcome(exit_code=ended.exit_code, stdout=stdout, stderr=stderr)

    def set_tags(self, node_id: str, tags: Mapping[str, str]) -> None:
        """Replaces the tags that the metadata service shows. Raises NodeUnknownError."""
        self._machine(node_id).metadata.tags = dict(tags)

    def notice(self, node_id: str, action: str | None, at: datetime | None) -> None:
        """Shows an interruption notice or the rebalance recommendation; None takes all back. Raises NodeUnknownError."""
        shown = self._machine(node_id).metadata
        when = at or datetime.now(UTC)
        if action is None:
            shown.interruption = shown.rebalance_at = None
        elif action == "rebalance":
            shown.rebalance_at = when
        else:
            shown.interruption = imds.interruption_notice(action, when)

    def fault(self, node_id: str, kind: str, **details: str | float) -> None:
        """Injects a fault (``faults.KINDS``). Raises NodeUnknownError, NodeError for an unknown kind or detail."""
        self._call(faults.inject(self._machine(node_id), kind, details))

    def root_of(self, node_id: str) -> Path:
        """Returns the node's root folder on the host. Raises NodeUnknownError."""
        return self._machine(node_id).state.root

    def node_ids(self) -> tuple[str, ...]:
        """Returns all nodes that are not killed, by id."""
        return tuple(sorted(self._machines))

    def close(self) -> None:
        """Ends every node and every process they started. Doing it twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        self._call(self._close_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_S)
        self._loop.close()
        for anchor in self._anchors:
            anchor.close()

    async def _close_all(self) -> None:
        machines = list(self._machines.values())
        self._machines.clear()
        for machine in machines:
            await machine.close_ports()
        await asyncio.to_thread(processes.end_all, [machine.mark for machine in machines])
        for machine in machines:
            await machine.erase()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()

    async def _powered_off(self, node_id: str) -> None:
        if self._on_power_off:
            await asyncio.to_thread(self._on_power_off, node_id)

    def _machine(self, node_id: str) -> Machine:
        try:
            return self._machines[node_id]
        except KeyError:
            raise NodeUnknownError(f"node_id: {node_id!r}: no such node") from None

    def _call(self, work: Coroutine[Any, Any, _T], timeout_s: float = _CALL_S) -> _T:
        if threading.current_thread() is self._thread:
            work.close()
            raise NodeError("a node runtime call from the runtime's own loop would wait for itself")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)


def _clear_away(nodes: Path) -> None:
    """Ends what nodes of an earlier sandbox in this folder left running, and deletes their disks."""
    marks = []
    for facts in nodes.glob(f"*/{FACTS_FILE}"):
        limits = json.loads(facts.read_text(encoding="utf-8"))["limits"]
        marks.append(Mark(facts.parent / "root", (limits[0], limits[1])))
    if marks:
        processes.end_all(marks)
    for folder in nodes.iterdir():
        shutil.rmtree(folder, ignore_errors=True)


def _hold_ports(ssh_port: int) -> tuple[socket.socket, socket.socket]:
    try:
        return listening_socket(_ANCHOR, ssh_port), listening_socket(_ANCHOR, 0)
    except OSError as error:
        raise NodeError(f"ssh_port: {ssh_port}: {error.strerror}") from error


def _python_sources() -> tuple[str, ...]:
    """Returns the site folders of the sandbox's own interpreter, in search order."""
    paths = sysconfig.get_paths()
    found = [paths["purelib"], paths["platlib"], *site.getsitepackages()]
    return tuple(path for path in dict.fromkeys(found) if Path(path).is_dir())
