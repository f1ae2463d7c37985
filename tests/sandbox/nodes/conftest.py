"""A node runtime for the module, and nodes on it that end with their test."""

import asyncio
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
import pytest
import yaml

from hostler_sandbox.nodes.runtime import CommandOutcome, SshNodes
from hostler_sandbox.nodes_port import NodeSpec

USER = "hostler"


@dataclass
class Identity:
    """Keys of one deployment: authority, user and host."""

    authority: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    user: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    host: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))

    def certificate(self, *principals, **more):
        return self.authority.generate_user_certificate(self.user, "test", principals=list(principals), **more)

    def user_data(self, **more) -> str:
        document = {
            "ssh_keys": {
                "ed25519_private": self.host.export_private_key("openssh").decode(),
                "ed25519_public": self.host.export_public_key("openssh").decode(),
            },
            "users": [{"name": USER, "sudo": "ALL=(ALL) NOPASSWD:ALL"}],
            "write_files": [
                {"path": "/etc/ssh/ca.pub", "content": self.authority.export_public_key().decode()},
                {
                    "path": "/etc/ssh/sshd_config.d/10-ca.conf",
                    "content": "TrustedUserCAKeys /etc/ssh/ca.pub\nAuthorizedPrincipalsFile /etc/ssh/principals/%u\n",
                },
                {"path": f"/etc/ssh/principals/{USER}", "content": "fleet-1\n"},
            ],
            **more,
        }
        return "#cloud-config\n" + yaml.safe_dump(document)


class Bench:
    """Boots nodes, runs commands on them, and knows what the guests told."""

    def __init__(self, folder: Path, *, use_nvml: bool = True) -> None:
        self.runtime = SshNodes(folder, use_nvml=use_nvml)
        self.powered_off: list[str] = []
        self.told = threading.Event()
        self.runtime.start(self._off)
        self.identity = Identity()
        self._numbers = itertools.count(2)
        with socket.socket() as probe:
            probe.bind(("127.1.0.1", 0))
            self.ssh_port = probe.getsockname()[1]

    def _off(self, node_id: str) -> None:
        self.powered_off.append(node_id)
        self.told.set()

    def boot(self, *, user_data: str | None = None, **more) -> "BenchNode":
        number = next(self._numbers)
        spec = {
            "node_id": f"i-{number:08x}",
            "hostname": f"ip-127-1-0-{number}",
            "address": f"127.1.{number // 250}.{number % 250 + 2}",
            "ssh_port": self.ssh_port,
            "user_data": self.identity.user_data() if user_data is None else user_data,
            "instance_type": "p5.48xlarge",
            "accelerator_name": "",
            "accelerator_count": 0,
            "memory_mib": 2097152,
            "vcpu_count": 192,
            "region": "us-east-1",
            "zone": "us-east-1a",
            "lifecycle": "spot",
            "image_id": "ami-0123456789abcdef0",
            "identity": {"instanceId": f"i-{number:08x}", "region": "us-east-1"},
            "credentials": None,
            "tags": {"Name": "n1"},
            **more,
        }
        self.runtime.boot(NodeSpec(**spec))
        return BenchNode(self, NodeSpec(**spec))


@dataclass
class BenchNode:
    bench: Bench
    spec: NodeSpec

    @property
    def id(self) -> str:
        return self.spec.node_id

    @property
    def root(self) -> Path:
        return self.bench.runtime.root_of(self.id)

    def run(self, command: str, timeout_s: float = 60) -> CommandOutcome:
        return self.bench.runtime.run(self.id, command, timeout_s)

    def ok(self, command: str) -> str:
        done = self.run(command)
        assert done.exit_code == 0, f"{command}: {done}"
        return done.stdout

    def fault(self, kind: str, **details) -> None:
        self.bench.runtime.gpu_fault(self.id, {"kind": kind, **details})

    async def connect(self, certificate=None, username: str = USER, **more) -> asyncssh.SSHClientConnection:
        identity = self.bench.identity
        known = f"[{self.spec.address}]:{self.spec.ssh_port} {identity.host.export_public_key().decode()}"
        options = {
            "username": username,
            "client_keys": [(identity.user, certificate or identity.certificate("fleet-1"))],
            "known_hosts": asyncssh.import_known_hosts(known),
            "agent_path": None,
            "config": None,
            **more,
        }
        return await asyncio.wait_for(asyncssh.connect(self.spec.address, self.spec.ssh_port, **options), 10)


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("nodes"))
    yield made
    made.runtime.close()


@pytest.fixture
def boot(bench) -> Iterator[Callable[..., BenchNode]]:
    before = set(bench.runtime.node_ids())
    yield bench.boot
    for node_id in set(bench.runtime.node_ids()) - before:
        bench.runtime.kill(node_id)
