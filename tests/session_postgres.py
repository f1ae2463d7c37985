"""One embedded PostgreSQL for a test session, shared by its xdist workers; the last one out removes it."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hostler.stores.embedded import EmbeddedPostgres
from hostler.stores.server_account import locked


@contextmanager
def shared_server() -> Iterator[EmbeddedPostgres]:
    base = Path(tempfile.gettempdir()) / f"hostler-tests-{os.getuid()}"
    base.mkdir(mode=0o711, exist_ok=True)
    assert base.stat().st_uid == os.getuid(), f"{base} belongs to somebody else"
    folder = base / os.environ.get("PYTEST_XDIST_TESTRUNUID", f"pid-{os.getpid()}")
    server = EmbeddedPostgres(folder, is_durable=False)
    with locked(base / "lock"):
        _sweep(base, but=folder)
        folder.mkdir(mode=0o711, exist_ok=True)
        _set_users(folder, _users(folder) | {os.getpid()})
        server.start()
    try:
        yield server
    finally:
        with locked(base / "lock"):
            _set_users(folder, _users(folder) - {os.getpid()})
            if not _users(folder):
                _remove(folder)


def _remove(folder: Path) -> None:
    EmbeddedPostgres(folder).remove()
    shutil.rmtree(folder, ignore_errors=True)


def _users(folder: Path) -> set[int]:
    """The processes that use the server and still live."""
    try:
        return {pid for pid in json.loads((folder / "users").read_text()) if _is_alive(pid)}
    except FileNotFoundError:
        return set()


def _set_users(folder: Path, pids: set[int]) -> None:
    (folder / "users").write_text(json.dumps(sorted(pids)))


def _sweep(base: Path, but: Path) -> None:
    """Ends the servers of sessions that were killed."""
    for folder in base.iterdir():
        if folder.is_dir() and folder != but and not _users(folder):
            _remove(folder)


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
