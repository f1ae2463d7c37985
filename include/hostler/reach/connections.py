"""The pool: one SSH connection a node, reused, closed when idle, with bounds on how many are worked on at once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import asyncssh

from hostler.reach.port import ReachError, Target

_CLOSE_S = 5.0

Connect = Callable[[Target], Awaitable[asyncssh.SSHClientConnection]]


@dataclass(slots=True)
class _Entry:
    """One node's place in the pool. ``users``: leases of it that are held now."""

    commands: asyncio.Semaphore
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: asyncssh.SSHClientConnection | None = None
    users: int = 0
    closing: asyncio.TimerHandle | None = None


class Leased:
    """A node's connection for as long as the lease is held."""

    def __init__(self, ssh: asyncssh.SSHClientConnection, again: Callable[[], Awaitable[asyncssh.SSHClientConnection]]) -> None:
        self.ssh = ssh
        self._again = again

    async def open(self, command: str) -> "asyncssh.SSHClientProcess[bytes]":
        """Starts a command. A reused connection that turns out to be dead is replaced once: the command was not sent yet."""
        try:
            return await self._start(command)
        except (OSError, asyncssh.ConnectionLost, asyncssh.DisconnectError, asyncssh.ChannelOpenError):
            if not self.ssh.is_closed():
                raise
        self.ssh = await self._again()
        return await self._start(command)

    async def _start(self, command: str) -> "asyncssh.SSHClientProcess[bytes]":
        return await self.ssh.create_process(command, encoding=None)


class ConnectionPool:
    """Connections by target.

    Args:
        connect: makes one; bounds its own time.
        most: nodes that are connected to or worked on at the same time; others wait.
        commands_each: commands at once on one node. idle_close_s: None keeps connections until ``close``.
    """

    def __init__(self, connect: Connect, *, most: int, commands_each: int, idle_close_s: float | None) -> None:
        self._connect = connect
        self._most = most
        self._commands_each = commands_each
        self._idle_close_s = idle_close_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._entries: dict[Target, _Entry] = {}
        self._busy = asyncio.Semaphore(most)

    @contextlib.asynccontextmanager
    async def lease(self, target: Target) -> AsyncIterator[Leased]:
        """Holds the target's connection. Raises what ``connect`` raises."""
        self._enter_loop()
        entry = self._entries.setdefault(target, _Entry(asyncio.Semaphore(self._commands_each)))
        entry.users += 1
        if entry.closing:
            entry.closing.cancel()
            entry.closing = None
        try:
            async with entry.commands, self._busy:
                connection = await self._connected(target, entry)
                yield Leased(connection, lambda: self._connected(target, entry))
        finally:
            entry.users -= 1
            self._rest(target, entry)

    async def close(self) -> None:
        """Closes all connections of this loop."""
        self._enter_loop()
        open_now = [entry for entry in self._entries.values() if entry.connection]
        for entry in self._entries.values():
            if entry.closing:
                entry.closing.cancel()
        self._entries.clear()
        await asyncio.gather(*(_close(entry.connection) for entry in open_now if entry.connection))

    def _enter_loop(self) -> None:
        """Connections belong to a loop; those of a loop that has ended can neither be used nor closed."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._entries = {}
            self._busy = asyncio.Semaphore(self._most)

    async def _connected(self, target: Target, entry: _Entry) -> asyncssh.SSHClientConnection:
        async with entry.lock:
            if entry.connection is None or entry.connection.is_closed():
                entry.connection = None
                entry.connection = await self._connect(target)
            return entry.connection

    def _rest(self, target: Target, entry: _Entry) -> None:
        if self._idle_close_s is not None and entry.users == 0 and self._entries.get(target) is entry:
            entry.closing = asyncio.get_running_loop().call_later(self._idle_close_s, self._drop, target, entry)

    def _drop(self, target: Target, entry: _Entry) -> None:
        if entry.users == 0 and self._entries.get(target) is entry:
            del self._entries[target]
            if entry.connection:
                entry.connection.close()


async def _close(connection: asyncssh.SSHClientConnection) -> None:
    connection.close()
    try:
        async with asyncio.timeout(_CLOSE_S):
            await connection.wait_closed()
    except (TimeoutError, OSError, asyncssh.Error, ReachError):
        connection.abort()
