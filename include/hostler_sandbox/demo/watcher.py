"""Stops an embedded PostgreSQL when its owner dies, however it dies: ``python -m hostler_sandbox.demo.watcher FOLDER``.

The server is a daemon of its own, so that it would outlive an owner that is killed. The owner holds this process's standard
input open; its end is the owner's.
"""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hostler.stores.embedded import EmbeddedPostgres


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[EmbeddedPostgres]:
    """Gives the server of ``folder``, not started yet, and stops it at the end; a watcher does so where this process can't."""
    server = EmbeddedPostgres(folder, is_durable=False)
    argv = [sys.executable, "-m", "hostler_sandbox.demo.watcher", str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True):
        try:
            yield server
        finally:
            server.stop()


def main(folder: Path) -> None:
    """Waits for the owner's end, then stops the server; nothing is left to do where the owner has stopped it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends by its owner's end alone
    sys.stdin.buffer.read()
    EmbeddedPostgres(folder).stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
