"""Runs commands on a node as real processes with the node's own environment."""

import asyncio
import asyncio.subprocess as aio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hostler_sandbox.nodes import processes
from hostler_sandbox.nodes.processes import Mark

SHELL = "/bin/bash"
"""As on the images played here; Debian and Ubuntu have it always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a command ended. ``exit_code`` is negative when a signal ended it."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where commands run: the node's root folder, its mark, its environment and, when its disk is full, no growth of files."""

    root: Path
    mark: Mark
    environment: Mapping[str, str]
    is_disk_full: bool = False


async def start(
    place: Place, command: str | None, *, user: str = "root", extra: Mapping[str, str] | None = None
) -> aio.Process:
    """Starts a shell command (None: a shell that reads its input) in an own session. The caller reads the pipes."""
    argv = [SHELL, "-c", command] if command is not None else [SHELL]
    prefix = processes.shell_prefix(place.mark)
    if place.is_disk_full:
        # No byte can be added to any file: what a full disk does, but for pipes. Real for every process that starts
        # from now on; ``Machine.fill_disk`` sees to those that run already.
        prefix += 'ulimit -S -f 0; trap "" XFSZ; '
    argv = [SHELL, "-c", f'{prefix}exec "$0" "$@"', *argv]
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=aio.PIPE,
        stdout=aio.PIPE,
        stderr=aio.PIPE,
        cwd=place.root,
        env={**place.environment, "USER": user, "LOGNAME": user, **(extra or {})},
        start_new_session=True,
    )


async def run(
    place: Place, command: str, *, stdin: bytes = b"", timeout_s: float | None = None, user: str = "root"
) -> Finished:
    """Runs a shell command to its end.

    Raises:
        TimeoutError: it took longer than ``timeout_s``; its process group was ended.
    """
    process = await start(place, command, user=user)
    try:
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await process.communicate(stdin)
    except (TimeoutError, asyncio.CancelledError):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    return Finished(exit_code=process.returncode or 0, stdout=stdout, stderr=stderr)
