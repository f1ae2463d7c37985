"""SSH transport on asyncssh: pinned host keys, short-lived user certificates, one reused connection a node.

Only curve25519 and ed25519: OpenSSH's post-quantum default costs the client several times the CPU of all else together, and
every node's host key is ours. No user or system configuration, no agent, no password: what is used is what is given here.
"""

import asyncio
import contextlib
import os
import posixpath
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import asyncssh

from hostler.reach.connections import ConnectionPool
from hostler.reach.port import CommandResult, HostKeyMismatchError, ReachError, Target

HOME = "$HOSTLER_HOME/"
HOME_WORDS = '"${HOSTLER_HOME:-/opt/hostler}"/'
_ABSENT = 44  # exit code of our own for "no such file", apart from those of cat and of ssh
_READ_BYTES = 65536
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com")


class Credential(Protocol):
    """A user key with its certificate (``vault.local.UserCertificate``)."""

    @property
    def key(self) -> asyncssh.SSHKey:
        """The private key."""
        ...

    @property
    def certificate(self) -> asyncssh.SSHCertificate:
        """The authority's word for it."""
        ...

    @property
    def expires_at(self) -> datetime:
        """When nodes stop accepting it, aware UTC."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SshLimits:
    """Bounds of the transport.

    Attributes:
        connections: nodes that are worked on at the same time. commands_per_node: below OpenSSH's MaxSessions, 10.
        connect_timeout_s: for connecting and proving both sides. idle_close_s: an unused connection is closed after this.
        keepalive_s: an open connection that stays silent for three of these is lost.
        output_bytes: of each of stdout and stderr of a command; the rest is read and dropped.
        file_bytes: largest file that ``get`` reads.
        renew_before_s: a certificate with less left is replaced; it covers nodes whose clock is ahead.
    """

    connections: int = 64
    commands_per_node: int = 8
    connect_timeout_s: float = 15
    idle_close_s: float = 300
    keepalive_s: float = 15
    output_bytes: int = 8 * 1024 * 1024
    file_bytes: int = 64 * 1024 * 1024
    renew_before_s: float = 1800


class SshTransport:
    """Implements ``reach.port.Transport``. Usable from one event loop at a time; a new loop starts with new connections.

    Args:
        credential: gives a fresh user key and certificate; asked again before the last one ends.
    """

    def __init__(self, credential: Callable[[], Credential], *, limits: SshLimits | None = None) -> None:
        self._new_credential = credential
        self._held: Credential | None = None
        self.limits = limits or SshLimits()
        self._pool = ConnectionPool(
            self._connect,
            most=self.limits.connections,
            commands_each=self.limits.commands_per_node,
            idle_close_s=self.limits.idle_close_s,
        )
        # A pool of its own: a node that waits for the jump host holds a place already. Never idle: others go through it.
        self._jumps = ConnectionPool(
            self._connect, most=self.limits.connections, commands_each=self.limits.connections, idle_close_s=None
        )

    async def run(self, target: Target, command: str, *, timeout_s: float, stdin: bytes | None = None) -> CommandResult:
        """Runs a shell command. Secrets go by ``stdin``, never in ``command``. Raises ReachError."""
        code, out, err = await self._execute(target, command, timeout_s, stdin, self.limits.output_bytes)
        return CommandResult(exit_code=code, stdout=out.decode("utf-8", "replace"), stderr=err.decode("utf-8", "replace"))

    async def put(self, target: Target, content: bytes, path: str, *, mode: int = 0o644, timeout_s: float = 60) -> None:
        """Writes a file whole (temporary name, then rename), making its folder. Raises ReachError.

        A path may start with ``$HOSTLER_HOME/``, the node's own folder; every other character is taken as it is.
        """
        temporary = f"{path}.{os.urandom(6).hex()}.part"
        words = (_quoted(posixpath.dirname(path) or "."), _quoted(temporary), _quoted(path))
        folder, part, whole = words
        command = (
            f"umask 077; mkdir -p {folder} && cat >{part} && "
            f'if [ "$(wc -c <{part})" -eq {len(content)} ] && chmod {mode:o} {part} && mv -f {part} {whole}; '
            f"then :; else rm -f {part}; exit 1; fi"
        )
        result = await self.run(target, command, timeout_s=timeout_s, stdin=content)
        if result.exit_code != 0:
            raise ReachError(f"{target.host}: writing {path} failed: {result.stderr.strip()[-300:] or 'cut short'}")

    async def get(self, target: Target, path: str, *, timeout_s: float = 60) -> bytes:
        """Reads a file; the path as in ``put``. Raises FileNotFoundError or ReachError."""
        quoted = _quoted(path)
        command = f"[ -e {quoted} ] || exit {_ABSENT}; exec cat {quoted}"
        code, out, err = await self._execute(target, command, timeout_s, None, self.limits.file_bytes + 1)
        if code == _ABSENT:
            raise FileNotFoundError(f"{target.host}: {path}")
        if code != 0:
            raise ReachError(f"{target.host}: reading {path} failed: {err.decode('utf-8', 'replace').strip()[-300:]}")
        if len(out) > self.limits.file_bytes:
            raise ReachError(f"{target.host}: {path} is larger than {self.limits.file_bytes} bytes")
        return out

    async def close(self) -> None:
        """Closes all connections."""
        await self._pool.close()
        await self._jumps.close()

    async def _execute(
        self, target: Target, command: str, timeout_s: float, stdin: bytes | None, limit: int
    ) -> tuple[int, bytes, bytes]:
        with _told(target):
            async with asyncio.timeout(timeout_s), self._opened(target, command) as process:
                feeding = asyncio.create_task(_feed(process, stdin))
                try:
                    out, err = await asyncio.gather(_read(process.stdout, limit), _read(process.stderr, limit))
                    await process.wait_closed()
                finally:
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
                if process.exit_status is None or process.exit_status < 0:
                    raise ReachError(f"{target.host}: the connection was cut while a command ran")
                return process.exit_status, out, err

    @contextlib.asynccontextmanager
    async def _opened(self, target: Target, command: str) -> AsyncIterator["asyncssh.SSHClientProcess[bytes]"]:
        async with self._pool.lease(target) as connection:
            process = await connection.open(command)
            try:
                yield process
            finally:
                # After a time-out the command must not go on unseen; closing the channel is all that SSH can do for sure.
                if process.exit_status is None:
                    with contextlib.suppress(OSError, asyncssh.Error):
                        process.kill()
                process.close()

    async def _connect(self, target: Target) -> asyncssh.SSHClientConnection:
        with _told(target):
            async with asyncio.timeout(self.limits.connect_timeout_s):
                if target.through is None:
                    return await self._dial(target, None)
                async with self._jumps.lease(target.through) as through:
                    return await self._dial(target, through.ssh)

    async def _dial(self, target: Target, tunnel: asyncssh.SSHClientConnection | None) -> asyncssh.SSHClientConnection:
        held = self._credential()
        pinned = asyncssh.import_public_key(target.host_key)
        return await asyncssh.connect(
            target.host,
            target.port,
            tunnel=tunnel,
            username=target.user,
            known_hosts=([pinned], [], [], [], [], [], []),
            client_keys=[(held.key, held.certificate)],
            config=None,
            agent_path=None,
            agent_forwarding=False,
            password=None,
            preferred_auth="publickey",
            public_key_auth=True,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_auth=False,
            gss_kex=False,
            kex_algs=["curve25519-sha256", "curve25519-sha256@libssh.org"],
            server_host_key_algs=["ssh-ed25519"],
            signature_algs=["ssh-ed25519"],
            encryption_algs=list(_CIPHERS),
            compression_algs=["none"],
            keepalive_interval=self.limits.keepalive_s,
            keepalive_count_max=3,
            connect_timeout=self.limits.connect_timeout_s,
            login_timeout=self.limits.connect_timeout_s,
        )

    def _credential(self) -> Credential:
        held = self._held
        if held is None or held.expires_at - datetime.now(UTC) < timedelta(seconds=self.limits.renew_before_s):
            held = self._held = self._new_credential()
        return held


@contextlib.contextmanager
def _told(target: Target) -> Iterator[None]:
    """Turns every way in which a node can fail to answer into ReachError."""
    try:
        yield
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostKeyMismatchError(
            f"{target.host}:{target.port}: another host key than the pinned one; nothing was sent"
        ) from error
    except TimeoutError as error:
        raise ReachError(f"{target.host}:{target.port}: no answer in time") from error
    except asyncssh.PermissionDenied as error:
        raise ReachError(f"{target.host}:{target.port}: user {target.user} was not let in") from error
    except (OSError, asyncssh.Error) as error:
        raise ReachError(f"{target.host}:{target.port}: {type(error).__name__}: {str(error)[:300]}") from error


def _quoted(path: str) -> str:
    if path.startswith(HOME):
        return HOME_WORDS + shlex.quote(path[len(HOME) :])
    return HOME_WORDS.rstrip("/") if path == HOME.rstrip("/") else shlex.quote(path)


async def _read(stream: "asyncssh.SSHReader[bytes]", limit: int) -> bytes:
    kept = bytearray()
    while piece := await stream.read(_READ_BYTES):
        kept += piece[: max(0, limit - len(kept))]
    return bytes(kept)


async def _feed(process: "asyncssh.SSHClientProcess[bytes]", content: bytes | None) -> None:
    # A command that ends without reading its input closes the channel: its exit code tells the story, not this.
    with contextlib.suppress(OSError, asyncssh.Error):
        view = content or b""
        for start in range(0, len(view), _READ_BYTES):
            process.stdin.write(view[start : start + _READ_BYTES])
            await process.stdin.drain()
        process.stdin.write_eof()
