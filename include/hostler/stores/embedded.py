"""The embedded PostgreSQL: a server of one's own from a wheel, on loopback, with a password."""

import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Final
from urllib.parse import quote

from hostler.ledger.errors import LedgerUnavailableError
from hostler.stores import server_account as account
from hostler.stores.pid_file import PidFile

USER: Final = "hostler"
DATABASE: Final = "hostler"
HOST: Final = "127.0.0.1"
MAX_CONNECTIONS: Final = 200
"""Airflow's processes with their pools, the ledger's, and a test session's."""

_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_START_TRIES: Final = 5
_START_TIMEOUT_S: Final = 60


class EmbeddedPostgres:
    """A PostgreSQL server in a folder. Safe to use from many processes at once; the server outlives them until ``stop``.

    Attributes:
        folder: holds password (mode 0600), lock and data. For root the data may lie elsewhere, see ``server_account``.
        is_durable: False trades safety at power loss for speed: for tests only. Takes effect at a start.
    """

    def __init__(self, folder: Path | str, *, is_durable: bool = True) -> None:
        self.folder = Path(folder).absolute()
        self.is_durable = is_durable

    def start(self) -> None:
        """Starts the server and makes the database ``hostler``; does nothing when it runs.

        Raises:
            LedgerUnavailableError: it does not start; the text has the server's own last words.
        """
        with self._locked():
            for _ in range(_START_TRIES):
                self._settle()
                if not self.is_running():
                    self._prepare()
                    self._launch()
                try:
                    return self._create_database(DATABASE)
                except LedgerUnavailableError:
                    # A server that was just killed may look alive for a moment.
                    if self._stays_up():
                        raise
            raise LedgerUnavailableError(f"the embedded PostgreSQL in {self.folder} starts, and ends again at once")

    def stop(self) -> None:
        """Ends the server and its connections; does nothing when it does not run.

        Raises:
            LedgerUnavailableError: it does not end.
        """
        if not self.folder.exists():
            return
        with self._locked():
            if not self.is_running():
                return
            for mode in ("fast", "immediate"):
                status, words = self._call("pg_ctl", "stop", "-w", "-t", "30", "-m", mode, "-D", self._data)
                if status == 0:
                    return
            raise LedgerUnavailableError(f"the embedded PostgreSQL in {self.folder} does not stop: {words.strip()}")

    def remove(self) -> None:
        """Stops the server and deletes it with all its data; other files in the folder stay."""
        self.stop()
        account.remove_home(self.folder)

    def is_running(self) -> bool:
        """True when the server is up and takes connections."""
        return self._pid_file.is_ready()

    def url(self, database: str = DATABASE, *, driver: str = "psycopg") -> str:
        """Returns a SQLAlchemy address, password included. The port may change with a restart, so do not keep it.

        Args:
            driver: SQLAlchemy's name of the driver: ``psycopg``, ``psycopg2``, ``asyncpg``.

        Raises:
            LedgerUnavailableError: the server does not run.
        """
        if not self.is_running():
            raise LedgerUnavailableError(f"the embedded PostgreSQL in {self.folder} is not running")
        return f"postgresql+{driver}://{USER}:{quote(self._password(), safe='')}@{HOST}:{self._pid_file.port}/{database}"

    def ensure_database(self, name: str) -> str:
        """Makes the database when it is missing. The server must run.

        Returns:
            Its address, as ``url`` does.

        Raises:
            ValueError: the name is not lower-case letters, digits and underscores.
            LedgerUnavailableError: the server does not run.
        """
        with self._locked():
            self._create_database(name)
        return self.url(name)

    @property
    def pid(self) -> int | None:
        """The server's process id; None when it does not run."""
        return self._pid_file.pid if self.is_running() else None

    @property
    def _data(self) -> Path:
        return account.existing_home(self.folder) / "data"

    @property
    def _pid_file(self) -> PidFile:
        return PidFile(self._data)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        account.home_for(self.folder)
        with account.locked(self.folder / "lock"):
            yield

    def _settle(self) -> None:
        """Waits while the server is on its way up or down, as after a start that took too long."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while self._pid_file.is_alive() and not self.is_running() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _stays_up(self) -> bool:
        """True when it still runs a moment later; one that was just killed looks alive for less than that."""
        time.sleep(0.2)
        return self.is_running()

    def _password(self) -> str:
        try:
            return (self.folder / "password").read_text()
        except OSError as error:
            raise LedgerUnavailableError(f"cannot read {self.folder / 'password'}: {error.strerror}") from error

    def _prepare(self) -> None:
        """Makes password and data folder when they are missing, and clears what a dead server left."""
        password = self.folder / "password"
        if not (self._data / "PG_VERSION").exists():
            if not password.exists():
                _write_private(password, secrets.token_urlsafe(24))
            self._init()
        if not self._pid_file.is_alive():
            # A pid file that a dead server left: the next would wait for whoever has that number now.
            self._pid_file.path.unlink(missing_ok=True)

    def _init(self) -> None:
        """Makes the data folder, whole or not at all."""
        part, secret = self._data.with_name("data.part"), self._data.with_name("password.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700)
        secret.unlink(missing_ok=True)
        _write_private(secret, self._password())
        account.give(part)
        account.give(secret)
        try:
            # The built-in locale sorts alike on every machine and needs none of the machine's own.
            locale = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
            login = (f"--username={USER}", "--auth=scram-sha-256", f"--pwfile={secret}")
            sync = () if self.is_durable else ("--no-sync",)
            status, words = self._call("initdb", *locale, *login, *sync, "-D", part)
        finally:
            secret.unlink(missing_ok=True)
        if status:
            raise LedgerUnavailableError(f"cannot make the embedded PostgreSQL in {self.folder}: {words.strip()}")
        part.rename(self._data)

    def _launch(self) -> None:
        log = self._data / "server.log"
        for _ in range(_START_TRIES):
            seen = log.stat().st_size if log.exists() else 0
            port = self._free_port()
            wait = ("-w", "-t", str(_START_TIMEOUT_S))
            status, words = self._call("pg_ctl", "start", *wait, "-D", self._data, "-l", log, "-o", self._options(port))
            if status == 0:
                (self.folder / "port").write_text(str(port))
                return
            words = log.read_bytes()[seen:].decode(errors="replace") if log.exists() else words
            # Another program took the port, or children of a killed server are still about.
            if "in use" not in words:
                break
            time.sleep(0.5)
        raise LedgerUnavailableError(f"the embedded PostgreSQL in {self.folder} does not start: {words[-1000:].strip()}")

    def _options(self, port: int) -> str:
        settings = {
            "listen_addresses": HOST,
            "port": port,
            "unix_socket_directories": "",
            "max_connections": MAX_CONNECTIONS,
            "timezone": "UTC",
            "log_timezone": "UTC",
            "cluster_name": "hostler",
        }
        if not self.is_durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        return " ".join(f"-c {name}='{value}'" for name, value in settings.items())

    def _free_port(self) -> int:
        """Returns the port of the last run when it is free, so that addresses stay good over a restart; else any free one."""
        try:
            last = int((self.folder / "port").read_text())
        except (OSError, ValueError):
            last = 0
        for port in (last, 0):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((HOST, port))
                except OSError:
                    continue
                return int(probe.getsockname()[1])
        raise LedgerUnavailableError(f"no free port on {HOST}")

    def _create_database(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"database name {name!r}: lower-case letters, digits and underscores are allowed, 63 at most")
        import psycopg

        address = self.url("postgres").replace("+psycopg", "", 1)
        try:
            with psycopg.connect(address, autocommit=True, connect_timeout=10) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
                    connection.execute(f'CREATE DATABASE "{name}"'.encode())
        except psycopg.Error as error:
            words = str(error).strip().splitlines()[0]
            raise LedgerUnavailableError(f"cannot make the database {name}: {words}") from None

    def _call(self, program: str, *arguments: str | Path) -> tuple[int, str]:
        try:
            return account.call([account.find_programs() / program, *arguments], timeout_s=_START_TIMEOUT_S + 30)
        except TimeoutExpired:
            return 1, f"{program} did not end in time"


def _write_private(path: Path, text: str) -> None:
    """Writes a new file that only we can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123 - mode from the first byte
        file.write(text)
