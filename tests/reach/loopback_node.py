"""A node on loopback: a real SSH server that runs real commands, each in an environment of its own."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import asyncssh

from hostler.reach.port import Target
from hostler.vault.local import LocalKeys

USER = "hostler"


async def until(is_so, deadline_s: float = 20) -> None:
    """Looks again and again, within bounds, at something that another process does."""
    async with asyncio.timeout(deadline_s):
        while not is_so():  # noqa: ASYNC110 - files and other processes tell nobody
            await asyncio.sleep(0.02)


class LoopbackNode:
    def __init__(self, folder: Path, keys: LocalKeys, name: str = "lease-0-1", address: str = "127.0.0.1") -> None:
        self.home = folder / "home"
        self.tools = folder / "tools"
        for path in (self.home, self.tools):
            path.mkdir(parents=True)
        self.keys = keys
        self.name = name
        self.address = address
        self.private, self.public = keys.host_key_pair(name)
        self.port = 0
        self.connections = 0
        self.open_now: set[asyncssh.SSHServerConnection] = set()
        self.logins: list[str] = []
        self.commands: list[str] = []
        self.running = 0
        self.most_running = 0
        self.environment: dict[str, str] = {}
        self.server: asyncssh.SSHAcceptor | None = None
        self.tunnels: list[tuple[str, int]] = []
        self._children: set[asyncio.subprocess.Process] = set()

    def tool(self, name: str, text: str) -> None:
        """Puts a program on the node's PATH, before the system's."""
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)

    async def start(self, *, private: str | None = None, port: int = 0, **more) -> None:
        node = self

        class Logins(asyncssh.SSHServer):
            def connection_made(self, conn):
                self._conn = conn
                node.connections += 1
                node.open_now.add(conn)

            def connection_lost(self, _exc):
                node.open_now.discard(self._conn)

            def begin_auth(self, username):
                node.logins.append(username)
                line = f'cert-authority,principals="hostler" {node.keys.user_ca_public_key()}'
                self._conn.set_authorized_keys(asyncssh.import_authorized_keys(line))
                return True

            def connection_requested(self, host, port, *_):
                node.tunnels.append((host, port))
                return True

        options = {
            "server_host_keys": [asyncssh.import_private_key(private or self.private)],
            "server_factory": Logins,
            "process_factory": self._run,
            "encoding": None,
            "password_auth": False,
            "kbdint_auth": False,
            **more,
        }
        self.server = await asyncssh.listen(self.address, port, **options)
        self.port = self.server.get_port()

    def target(self, **more) -> Target:
        return Target(**{"host": self.address, "port": self.port, "user": USER, "host_key": self.public, **more})

    async def close(self) -> None:
        if self.server:
            self.server.close()
        for connection in tuple(self.open_now):
            connection.abort()
        for child in tuple(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
        if self.server:
            await self.server.wait_closed()

    async def _run(self, session: asyncssh.SSHServerProcess[bytes]) -> None:
        command = session.command or ""
        self.commands.append(command)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            await self._serve(session, command)
        finally:
            self.running -= 1

    async def _serve(self, session, command: str) -> None:
        child = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.home,
            env={
                "PATH": f"{self.tools}:{os.environ['PATH']}",
                "HOSTLER_HOME": str(self.home / "opt"),
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9",
                **self.environment,
            },
            start_new_session=True,
        )
        self._children.add(child)
        feeding = asyncio.create_task(_feed(session, child))
        try:
            await asyncio.gather(_drain(child.stdout, session.stdout), _drain(child.stderr, session.stderr))
            code = await child.wait()
        finally:
            feeding.cancel()
            self._children.discard(child)
        with contextlib.suppress(OSError, asyncssh.Error):
            session.exit(code if code >= 0 else 128 - code)


async def _drain(source, target) -> None:
    while data := await source.read(65536):
        with contextlib.suppress(OSError, asyncssh.Error):
            target.write(data)
            await target.drain()


async def _feed(session, child) -> None:
    while True:
        try:
            data = await session.stdin.read(65536)
        except (asyncssh.BreakReceived, asyncssh.SignalReceived):
            continue
        except (OSError, asyncssh.Error):
            data = b""
        with contextlib.suppress(OSError, RuntimeError):
            if not data:
                child.stdin.close()
                return
            child.stdin.write(data)
            await child.stdin.drain()
