"""The node runtime: boots, faults and ends nodes. One event loop in one background thread serves all of them."""

import asyncio
import json
import shutil
import site
import sysconfig
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from hostler_sandbox.nodes import faults, layout, nvml, processes
from hostler_sandbox.nodes import metadata as imds
from hostler_sandbox.nodes.guest.state import FACTS_FILE
from hostler_sandbox.nodes.machine import Machine, Site
from hostler_sandbox.nodes.ssh_server import listening_socket
from hostler_sandbox.nodes_port import BootError, NodeSpec, PowerOff

_T = TypeVar("_T")
_CALL_S: Final = 60.0
_ANCHOR: Final = "127.1.0.1"
"""Address of the metadata service for all nodes; each node's own is at its own address, same port. No node may have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """How a command ended. ``exit_code`` is negative when a signal ended it."""

    exit_code: int
    stdout: str
    stderr: str


class SshNodes:
    """Implements ``nodes_port.NodeRuntime`` with SSH servers on loopback and real processes.

    Args:
        folder: where nodes and shared programs lie; made when missing. What nodes of an earlier sandbox left there is cleared
            away, processes first.
        use_nvml: build the NVML library; without it (or without a C compiler) programs find no library, and only
            ``nvidia-smi`` reports. ``nvml_library`` says which it is: None without.
    """

    def __init__(self, folder: Path, *, use_nvml: bool = True) -> None:
        self._machines: dict[str, Machine] = {}
        self._is_closed = False
        self._power_off: PowerOff = lambda _node_id: None
        shared, nodes = folder.resolve() / "shared", folder.resolve() / "nodes"
        nodes.mkdir(parents=True, exist_ok=True)
        _clear_away(nodes)
        layout.make_shared_programs(shared, Path(__file__).parent / "guest")
        self.nvml_library: Path | None = nvml.build(shared) if use_nvml else None
        self._anchor = listening_socket(_ANCHOR, 0)
        self._site = Site(
            folder=nodes,
            shared=shared,
            metadata_port=self._anchor.getsockname()[1],
            nvml_library=self.nvml_library,
            python_sources=_python_sources(),
        )
        self._metadata: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sandbox-nodes", daemon=True)

    def start(self, power_off: PowerOff) -> None:
        """Starts the thread and the metadata service. Called once, before the first boot."""
        self._power_off = power_off
        self._thread.start()
        self._call(self._open())

    async def _open(self) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await imds.talk(reader, writer, self._answer)

        self._metadata = await asyncio.start_server(talk, sock=self._anchor)

    async def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        """The service for all: ``/<node id>/latest/...``."""
        node_id, _, rest = path.lstrip("/").partition("/")
        machine = self._machines.get(node_id)
        if machine is None or not rest.startswith("latest/"):
            return 404, ""
        return await machine.metadata.answer(method, f"/{rest}", headers, body)

    def boot(self, spec: NodeSpec) -> None:
        """Brings one machine up; returns when its SSH port accepts, or at once when ``boot_fails``. Raises BootError."""
        self._call(self._boot(spec))

    async def _boot(self, spec: NodeSpec) -> None:
        if spec.node_id in self._machines or "/" in spec.node_id or spec.node_id.startswith("."):
            raise BootError(f"node_id: {spec.node_id!r}: taken, or no plain name")
        if not spec.address.startswith("127.") or spec.address == _ANCHOR:
            raise BootError(f"address: {spec.address!r}: must be a loopback address and not {_ANCHOR}")
        machine = Machine(spec, self._site, self._powered_off)
        self._machines[spec.node_id] = machine
        try:
            machine.create()
            await machine.power_on(is_first=True)
        except BaseException:
            self._machines.pop(spec.node_id, None)
            await _end(machine)
            raise

    def kill(self, node_id: str) -> None:
        """Terminates: no process, no port, no disk is left on return. An unknown id is no error."""
        machine = self._machines.pop(node_id, None)
        if machine:
            self._call(_end(machine))

    def stop(self, node_id: str) -> None:
        """Powers off: processes end, disk and address stay. Doing it twice is fine. Raises KeyError."""
        self._call(self._machines[node_id].power_off())

    def resume(self, node_id: str) -> None:
        """Boots a stopped node again from its disk. Raises KeyError, BootError."""
        if not self._machines[node_id].is_on:
            self._call(self._machines[node_id].power_on(is_first=False))

    def reboot(self, node_id: str) -> None:
        """Restarts: processes end, SSH is away for a moment, the boot id changes. Raises KeyError, BootError."""
        self._call(self._machines[node_id].reboot())

    def freeze(self, node_id: str) -> None:
        """Stops every process (SIGSTOP) and goes silent: the port stays open, connections hang. Raises KeyError."""
        self._call(self._machines[node_id].freeze())

    def thaw(self, node_id: str) -> None:
        """Undoes ``freeze``. Raises KeyError."""
        self._call(self._machines[node_id].thaw())

    def cut_network(self, node_id: str) -> None:
        """SSH is refused and open connections are dropped; processes go on. Raises KeyError.

        Not covered: what the node itself calls (object store, metadata) still answers.
        """
        self._call(self._machines[node_id].cut_off())

    def mend_network(self, node_id: str) -> None:
        """Undoes ``cut_network``. Raises KeyError."""
        self._call(self._machines[node_id].mend())

    def gpu_fault(self, node_id: str, fault: Mapping[str, object]) -> None:
        """Writes a hardware fault (``faults.KINDS``) into the node's state. Raises KeyError, ValueError."""
        faults.inject(self._machines[node_id].state, fault)

    def fill_disk(self, node_id: str) -> None:
        """Leaves no free space. Raises KeyError.

        Real: no file of the node can grow, by a limit on all its processes (they see EFBIG where a full disk says ENOSPC; SFTP
        says ENOSPC). Shown: ``df`` and ``apt-get`` on the node. Not covered: ``statvfs`` shows the host's disk.
        """
        self._call(self._machines[node_id].fill_disk(is_full=True))

    def free_disk(self, node_id: str) -> None:
        """Undoes ``fill_disk``. Raises KeyError."""
        self._call(self._machines[node_id].fill_disk(is_full=False))

    def set_metadata(self, node_id: str, path: str, value: str | None) -> None:
        """Serves ``value`` under ``latest/meta-data/<path>``; None takes the entry away. Raises KeyError."""
        extra = self._machines[node_id].metadata.extra
        if value is None:
            extra.pop(path.strip("/"), None)
        else:
            extra[path.strip("/")] = value

    def metadata_url(self) -> str:
        """Returns the service for all nodes, to be followed by ``/<node id>/latest/...``."""
        return f"http://{_ANCHOR}:{self._site.metadata_port}"

    def run(self, node_id: str, command: str, timeout_s: float = 60) -> CommandOutcome:
        """Runs a shell command as root, as a cloud's run-command would. Raises KeyError, TimeoutError."""
        ended = self._call(self._machines[node_id].run(command, timeout_s), timeout_s + _CALL_S)
        stdout, stderr = (text.decode("utf-8", "replace") for text in (ended.stdout, ended.stderr))
        return CommandOutcome(exit_code=ended.exit_code, stdout=stdout, stderr=stderr)

    def root_of(self, node_id: str) -> Path:
        """Returns the node's root folder on the host. Raises KeyError."""
        return self._machines[node_id].state.root

    def node_ids(self) -> tuple[str, ...]:
        """Returns all nodes that are not killed, by id."""
        return tuple(sorted(self._machines))

    def close(self) -> None:
        """Ends every node and every process they started. Doing it twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._thread.is_alive():
            self._call(self._close_all())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CALL_S)
        self._anchor.close()
        self._loop.close()

    async def _close_all(self) -> None:
        machines = list(self._machines.values())
        self._machines.clear()
        for machine in machines:
            await machine.close_ports()
        await asyncio.to_thread(processes.end_all, [machine.mark for machine in machines])
        for machine in machines:
            await machine.erase()
        if self._metadata:
            self._metadata.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()

    async def _powered_off(self, node_id: str) -> None:
        await asyncio.to_thread(self._power_off, node_id)

    def _call(self, work: Coroutine[Any, Any, _T], timeout_s: float = _CALL_S) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)


async def _end(machine: Machine) -> None:
    await machine.power_off()
    await machine.erase()


def _clear_away(nodes: Path) -> None:
    """Ends what nodes of an earlier sandbox in this folder left running, and deletes their disks."""
    marks = []
    for facts in nodes.glob(f"*/{FACTS_FILE}"):
        soft, hard = json.loads(facts.read_text(encoding="utf-8"))["mark"]
        marks.append((soft, hard))
    if marks:
        processes.end_all(marks)
    for folder in nodes.iterdir():
        shutil.rmtree(folder, ignore_errors=True)


def _python_sources() -> tuple[str, ...]:
    """Returns the site folders of the sandbox's own interpreter, in search order."""
    paths = sysconfig.get_paths()
    found = [paths["purelib"], paths["platlib"], *site.getsitepackages()]
    return tuple(path for path in dict.fromkeys(found) if Path(path).is_dir())
