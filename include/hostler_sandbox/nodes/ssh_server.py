"""The SSH side of one node: accepts on the node's address, lets in whom the node's files let in, runs commands, serves SFTP.

Connections are accepted here and not by asyncssh, so that a frozen node can keep its port open and say nothing, and a node
that is cut off can drop everything at once.
"""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import asyncssh

from hostler_sandbox.nodes import commands, ssh_access
from hostler_sandbox.nodes.cloud_init import User
from hostler_sandbox.nodes.commands import Place

_LOG = logging.getLogger(__name__)
_CHUNK_BYTES = 65536


class _Logins(asyncssh.SSHServer):
    """Decides by the node's files, read at each login."""

    def __init__(self, root: Path, users: Callable[[], Mapping[str, User]]) -> None:
        self._root = root
        self._users = users
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def begin_auth(self, username: str) -> bool:
        text = ssh_access.authorized_keys(self._root, self._users(), username)
        if text and self._connection:
            try:
                self._connection.set_authorized_keys(asyncssh.import_authorized_keys(text))
            except ValueError:
                _LOG.warning("node %s: unreadable authorized keys for %s", self._root.parent.name, username)
        return True


class _Files(asyncssh.SFTPServer):
    """SFTP inside the node's root folder; writing fails while the disk is full."""

    def __init__(self, chan: asyncssh.SSHServerChannel[bytes], place: Callable[[], Place]) -> None:
        self._place = place
        super().__init__(chan, chroot=os.fsencode(place().root))

    def exit(self) -> None:
        """Tells the client that all went well: OpenSSH's sftp and scp fail without an exit status."""
        super().exit()
        with contextlib.suppress(OSError):
            self.channel.exit(0)

    def write(self, file_obj: object, offset: int, data: bytes) -> int | Awaitable[int]:
        if self._place().is_disk_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(file_obj, offset, data)


class NodeSsh:
    """One node's SSH server.

    ``place`` and ``users`` are asked at each use, so that faults and later logins take effect at once.
    """

    def __init__(self, *, address: str, port: int, place: Callable[[], Place], users: Callable[[], Mapping[str, User]]) -> None:
        self.address = address
        self.port = port
        self._place = place
        self._users = users
        self._options: asyncssh.SSHServerConnectionOptions | None = None
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._sockets: set[socket.socket] = set()

    def set_host_key(self, key: asyncssh.SSHKey) -> None:
        """Sets the key that the node proves itself with. To be called before ``open``."""
        self._options = asyncssh.SSHServerConnectionOptions(
            server_factory=lambda: _Logins(self._place().root, self._users),
            server_host_keys=[key],
            process_factory=self._run,
            sftp_factory=lambda chan: _Files(chan, self._place),
            allow_scp=True,
            encoding=None,
            line_editor=False,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            login_timeout=30,
        )

    def open(self) -> None:
        """Starts to listen. Raises OSError when another program holds the address and port."""
        if self._socket is None:
            self._socket = listening_socket(self.address, self.port)
        if self._accepting is None:
            self._accepting = asyncio.get_running_loop().create_task(self._accept(self._socket))

    async def pause(self) -> None:
        """Goes silent: the port stays open, nobody is answered, open connections hang."""
        if self._accepting:
            self._accepting.cancel()
            self._accepting = None
        for connection in self._connections:
            with contextlib.suppress(AttributeError, RuntimeError):
                connection._transport.pause_reading()  # type: ignore[union-attr]  # noqa: SLF001  # no public way

    def resume(self) -> None:
        """Answers again, those that waited included."""
        for connection in self._connections:
            with contextlib.suppress(AttributeError, RuntimeError):
                connection._transport.resume_reading()  # type: ignore[union-attr]  # noqa: SLF001  # as above
        self.open()

    async def cut(self) -> None:
        """Closes the port and drops every connection without a word. ``open`` mends it."""
        await self.pause()
        if self._socket:
            self._socket.close()
            self._socket = None
        for connection in tuple(self._connections):
            connection.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in tuple(self._sockets):
            one.close()
        self._connections.clear()
        self._sockets.clear()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(listener)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = loop.create_task(self._serve(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: socket.socket) -> None:
        connection = None
        self._sockets.add(client)
        try:
            connection = await asyncssh.run_server(client, options=self._options)
            self._connections.add(connection)
            await connection.wait_closed()
        except (OSError, asyncssh.Error, TimeoutError):
            pass  # a client that went away or was not let in: its own end has the words
        finally:
            self._sockets.discard(client)
            if connection:
                self._connections.discard(connection)
            else:
                client.close()

    async def _run(self, session: asyncssh.SSHServerProcess[bytes]) -> None:
        user = session.get_extra_info("username")
        if session.command is None:
            motd = self._place().root / "etc/motd"
            session.stdout.write(motd.read_bytes() if motd.exists() else b"")
        asked = {_text(key): _text(value) for key, value in session.env.items() if _text(key) in {"LANG", "TERM"}}
        child = await commands.start(self._place(), session.command and _text(session.command), user=user, extra=asked)
        feeding = asyncio.create_task(_feed(session, child))
        try:
            await asyncio.gather(_drain(child.stdout, session.stdout), _drain(child.stderr, session.stderr))
            code = await child.wait()
        finally:
            feeding.cancel()
        with contextlib.suppress(OSError, asyncssh.Error):
            if code < 0:
                session.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
            else:
                session.exit(code)


def listening_socket(address: str, port: int) -> socket.socket:
    """Returns a non-blocking listening socket on a loopback address. Raises OSError when it is taken."""
    if not address.startswith("127."):
        raise OSError(errno.EADDRNOTAVAIL, f"{address}: nodes listen on loopback only")
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        made.listen(128)
        made.settimeout(0)
    except OSError:
        made.close()
        raise
    return made


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


async def _drain(source: asyncio.StreamReader | None, target: asyncssh.SSHWriter[bytes]) -> None:
    """Copies until the end. When the client is gone, reads on so that the process does not block (a real one gets SIGPIPE)."""
    while source and (data := await source.read(_CHUNK_BYTES)):
        with contextlib.suppress(OSError, asyncssh.Error):
            target.write(data)
            await target.drain()


async def _feed(session: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
    """Copies the client's input to the process, and its signals to the process group."""
    while child.stdin:
        try:
            data = await session.stdin.read(_CHUNK_BYTES)
        except asyncssh.SignalReceived as received:
            _signal_group(child.pid, f"SIG{received.signal}")
            continue
        except (asyncssh.BreakReceived, asyncssh.TerminalSizeChanged):
            continue
        except (OSError, asyncssh.Error):
            data = b""
        with contextlib.suppress(OSError, RuntimeError):
            if not data:
                child.stdin.close()
                return
            child.stdin.write(data)
            await child.stdin.drain()


def _signal_group(pid: int, name: str) -> None:
    with contextlib.suppress(ProcessLookupError, KeyError):
        os.killpg(pid, signal.Signals[name])
