"""The sandbox as a whole: builds the parts, serves them, ends them."""

import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from hostler_sandbox.aws import fixtures, moto_server
from hostler_sandbox.aws.ec2 import Ec2Front
from hostler_sandbox.aws.overlay import Overlay
from hostler_sandbox.clock import SandboxClock
from hostler_sandbox.control import Control
from hostler_sandbox.control_views import Views
from hostler_sandbox.journal import Journal
from hostler_sandbox.nodes_port import NodeRuntime, NoNodes
from hostler_sandbox.state.estate import Delays, Estate
from hostler_sandbox.state.faults import Faults
from hostler_sandbox.state.pools import Pools
from hostler_sandbox.state.timers import Timers
from hostler_sandbox.web import WebServer

SANDBOX_FILE: Final = "sandbox.json"
JOURNAL_FILE: Final = "journal.jsonl"
_SHOWN_TYPES: Final = ("p5.48xlarge",)
RuntimeMaker = Callable[[Path], NodeRuntime]
"""folder -> runtime, not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """How a sandbox is started.

    Attributes:
        folder: where ``sandbox.json``, the journal and the nodes' disks go; made when missing.
        seed: picks which zones are out of stock; None: none are.
        clock_scale: sandbox seconds in a real one. delays: see there.
        has_nodes: False: machines run nothing. use_nvml: build the NVML library for the nodes.
        runtime: makes another runtime than the default.
        port (of Amazon's API), control_port, ssh_port: 0 chooses a free one.
        allows_blocks: capacity blocks may be bought.
    """

    folder: Path
    seed: int | None = None
    clock_scale: float = 1.0
    delays: Delays = field(default_factory=Delays)
    has_nodes: bool = True
    use_nvml: bool = True
    runtime: RuntimeMaker | None = None
    port: int = 0
    control_port: int = 0
    ssh_port: int = 0
    allows_blocks: bool = False


class Sandbox:
    """A running sandbox, from entering to leaving its ``with`` block.

    Attributes:
        info: what ``sandbox.json`` holds. estate, faults, journal, views, runtime: the parts, for tests in the same process.
    """

    def __init__(self, options: SandboxOptions) -> None:
        self.options = options
        self._stack = ExitStack()
        self.info: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Starts everything and writes ``sandbox.json``."""
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends everything: nodes first, then the fronts; ``sandbox.json`` goes, the journal stays."""
        self.close()

    def close(self) -> None:
        """Ends everything. Doing it twice is fine."""
        self._stack.close()

    def _start(self) -> None:
        options = self.options
        folder = options.folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        self.clock = SandboxClock(options.clock_scale)
        self.journal = Journal(self.clock, folder / JOURNAL_FILE)
        self._stack.callback(self.journal.close)
        self.timers = Timers(self.clock)
        self._stack.callback(self.timers.close)
        self.runtime = self._make_runtime(folder)
        self._stack.callback(self.runtime.close)
        self.ssh_port = options.ssh_port or _free_port()
        self.faults = Faults(self.clock.now, options.seed)
        self.estate = Estate(
            clock=self.clock,
            journal=self.journal,
            timers=self.timers,
            pools=Pools(moto_server.zones_of, options.seed),
            runtime=self.runtime,
            delays=options.delays,
        )
        self.runtime.start(self._powered_off)
        moto_server.reset()
        made = fixtures.set_up()
        moto = moto_server.MotoServer()
        self.ec2 = Ec2Front(
            estate=self.estate, moto=moto, faults=self.faults, allows_blocks=options.allows_blocks, ssh_port=self.ssh_port
        )
        overlay = Overlay(estate=self.estate, ec2=self.ec2, moto=moto, faults=self.faults, journal=self.journal)
        self.views = Views(self.estate, self.faults, self._details)
        control = Control(
            estate=self.estate, faults=self.faults, views=self.views, region_of=moto_server.region_of, on_reset=self._forget,
            add_event=self._add_event, send_event=moto_server.send_event,
        )  # fmt: skip
        aws = self._stack.enter_context(WebServer(overlay, port=options.port, name="sandbox-aws"))
        controls = self._stack.enter_context(WebServer(control, port=options.control_port, name="sandbox-control"))
        self._write_info(folder, aws.url, controls.url, made)

    def _make_runtime(self, folder: Path) -> NodeRuntime:
        if self.options.runtime is not None:
            return self.options.runtime(folder / "nodes")
        if not self.options.has_nodes:
            return NoNodes()
        # Late: a sandbox without nodes needs no SSH.
        from hostler_sandbox.nodes.runtime import SshNodes

        return SshNodes(folder / "nodes", use_nvml=self.options.use_nvml)

    def _powered_off(self, node_id: str) -> None:
        """The guest ended itself. From the runtime's own thread, so nothing may be done here that waits for it."""
        self.timers.work(lambda: self.estate.power_off(node_id))

    def _write_info(self, folder: Path, aws_endpoint: str, control_url: str, made: dict[str, Any]) -> None:
        self.info = {
            "simulated": True,
            "pid": os.getpid(),
            "aws_endpoint": aws_endpoint,
            "control_url": control_url,
            "ssh_port": self.ssh_port,
            "metadata_url": self.runtime.metadata_url(),
            "journal": str(folder / JOURNAL_FILE),
            "nvml": getattr(self.runtime, "nvml_library", None) is not None,
            "seed": self.options.seed,
            "empty_pools": self._empty_pools(),
            "fixtures": made,
        }
        path = folder / SANDBOX_FILE
        draft = path.with_suffix(".json.new")
        draft.write_text(json.dumps(self.info, indent=2) + "\n", encoding="utf-8")
        # Readers wait for the file: it must never be there half-written.
        draft.replace(path)
        self._stack.callback(path.unlink, missing_ok=True)

    @property
    def aws_endpoint(self) -> str:
        """Where Amazon's API answers."""
        return str(self.info["aws_endpoint"])

    @property
    def control_url(self) -> str:
        """Where the control API answers."""
        return str(self.info["control_url"])

    def _empty_pools(self) -> list[str]:
        """Returns the pools of the 8-GPU types that the seed has emptied, as zone/type/capacity type; for the demo's words."""
        if self.options.seed is None:
            return []
        return [
            f"{zone}/{name}/{capacity_type}"
            for region in fixtures.REGIONS
            for name in _SHOWN_TYPES
            for capacity_type in ("spot", "on-demand")
            for zone in moto_server.zones_of(region, name)
            if self.estate.pools.left(region, (zone, name, capacity_type)) == 0
        ]

    def _details(self, machine_id: str) -> dict[str, Any]:
        one = self.ec2.instances.find(machine_id)
        if one is None:
            return {}
        tags = {tag["Key"]: tag["Value"] for tag in one.base.get("Tags") or ()}
        return {"tags": tags, "token": one.client_token or None}

    def _add_event(self, machine_id: str, code: str, in_s: float, description: str) -> str:
        return self.ec2.events.add(machine_id, code, self.clock.now() + timedelta(seconds=in_s), description)

    def _forget(self) -> None:
        self.ec2.clear()

    def until_quiet(self, deadline_s: float = 10.0) -> bool:
        """Waits until no machine is pending, stopping or shutting down; False when that takes longer than ``deadline_s``."""
        ends_s = time.monotonic() + deadline_s
        while time.monotonic() < ends_s:
            self.timers.run_due()
            with self.estate.lock:
                if all(one.state.value in {"running", "stopped", "terminated"} for one in self.estate.machines.values()):
                    return True
            time.sleep(0.01)
        return False


def _free_port() -> int:
    """Returns a port that is free on the nodes' addresses; each node binds it on an address of its own."""
    with socket.socket() as probe:
        probe.bind(("127.1.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
