"""Starts a whole sandbox in this process: nodes, the AWS endpoint, the control API. Loopback only, ports chosen free."""

import json
import logging
import os
import random
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from hostler_sandbox.aws.account import Account
from hostler_sandbox.aws.wire import AwsWire
from hostler_sandbox.control import Control
from hostler_sandbox.journal import Journal
from hostler_sandbox.nodes.runtime import SshNodes
from hostler_sandbox.state.cloud import Cloud, Delays
from hostler_sandbox.state.types import TYPES, zones_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """How a sandbox is set up.

    Attributes:
        folder: where nodes, journal and sandbox.json lie. port: of the AWS endpoint; 0 chooses a free one.
        seed: picks the pools that are out of stock at start (see ``scarce``); None leaves all pools unlimited.
        scarce: (region, instance type, capacity types) that the seed makes scarce.
        use_nvml: build the NVML library for the nodes.
    """

    folder: Path
    port: int = 0
    seed: int | None = None
    scarce: tuple[tuple[str, str, tuple[str, ...]], ...] = (("us-east-1", "p5.48xlarge", ("spot",)),)
    delays: Delays = field(default_factory=Delays)
    use_nvml: bool = True


class Sandbox:
    """A running sandbox; a context manager that leaves no node and no port behind."""

    def __init__(self, options: SandboxOptions) -> None:
        options.folder.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")
        self.folder = options.folder
        self.journal = Journal(options.folder / "journal.jsonl")
        self.nodes = SshNodes(options.folder / "nodes", use_nvml=options.use_nvml)
        self.ssh_port = _free_port()
        self.cloud = Cloud(self.nodes, self.journal, options.delays, self.ssh_port)
        self.nodes.start(self._on_power_off)
        self.account = Account()
        self.fixtures = self.account.furnish()
        self.empty_pools = self._make_scarce(options)
        self._servers = (
            _serve(AwsWire(self.cloud, self.account, self.journal), options.port),
            _serve(Control(self.cloud), 0),
        )
        self.aws_endpoint, self.control_url = (f"http://127.0.0.1:{server.port}" for server in self._servers)

    def facts(self) -> dict[str, Any]:
        """Returns what sandbox.json holds."""
        return {
            "simulated": True,
            "pid": os.getpid(),
            "aws_endpoint": self.aws_endpoint,
            "control_url": self.control_url,
            "ssh_port": self.ssh_port,
            "journal": str(self.journal.path),
            "nvml": self.nodes.nvml_library is not None,
            "empty_pools": ["/".join(pool) for pool in self.empty_pools],
            "fixtures": self.fixtures,
        }

    def write_facts(self) -> Path:
        """Writes sandbox.json whole (rename), which says that all is ready; returns its path."""
        path = self.folder / "sandbox.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(self.facts(), indent=2))
        part.replace(path)
        return path

    def close(self) -> None:
        """Ends every node and closes every port."""
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self.cloud.close()
        self.nodes.close()
        self.journal.close()

    def _make_scarce(self, options: SandboxOptions) -> list[tuple[str, str, str]]:
        """Empties some zones' pools, never all of one kind; the same seed, the same zones."""
        if options.seed is None:
            return []
        rng = random.Random(options.seed)  # noqa: S311  # a rehearsal's dice, no secret
        empty: list[tuple[str, str, str]] = []
        for region, name, capacity_types in options.scarce:
            zones = zones_of(TYPES[name], region)
            for capacity_type in capacity_types:
                empty.extend((zone, name, capacity_type) for zone in rng.sample(zones, rng.randrange(1, len(zones))))
        for pool in empty:
            self.cloud.stock.pools[pool] = 0
        return empty

    def _on_power_off(self, node_id: str) -> None:
        threading.Thread(target=self.cloud.power_off, args=(node_id,), name=f"power-off-{node_id}", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class _QuietHandler(WSGIRequestHandler):
    """Keeps werkzeug's line a request out of the terminal: the journal has it."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002  # werkzeug's name
        logging.getLogger("hostler_sandbox").debug("%s %s", type, message % args if args else message)


def _serve(app: Any, port: int) -> BaseWSGIServer:
    server = make_server("127.0.0.1", port, app, threaded=True, request_handler=_QuietHandler)
    threading.Thread(target=server.serve_forever, name=f"sandbox-http-{server.port}", daemon=True).start()
    return server


def _free_port() -> int:
    """Returns a port that is free on the nodes' addresses; each node binds it on an address of its own."""
    with socket.socket() as probe:
        probe.bind(("127.1.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
