"""A whole Airflow on loopback, as separate processes under a keeper: for the demo, and for the live tests.

``airflow standalone`` is not used: it orphans its children when it is stopped, and restarts none that dies (measured on 3.3.2).
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from hostler_sandbox.airflow_celery import CeleryCluster
from hostler_sandbox.airflow_client import AirflowApiError, AirflowClient
from hostler_sandbox.keeper import KeeperSpec, ProcessSpec
from hostler_sandbox.kept import Kept

COMPONENTS: Final = ("api-server", "scheduler", "dag-processor", "triggerer")


class AirflowNotReadyError(RuntimeError):
    """It did not become healthy in time, or its database could not be migrated; the text names the logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowPlace:
    """What a local Airflow works with.

    Attributes:
        folder: its home: configuration, logs, passwords. Made when it is missing.
        database_url: an empty or migrated PostgreSQL database, ``postgresql://...``.
        users: name -> role of the simple auth manager (``admin op user viewer``); passwords are made up.
        env: further environment of all components: ``HOSTLER_FLEET``, ``AIRFLOW_CONN_...``, ``AIRFLOW__...``.
        python_path: source folders to put before the installed packages.
        parallelism: most tasks that run at once.
        celery_workers: 0: the LocalExecutor; else a CeleryExecutor with so many workers, each with ``parallelism`` slots.
        triggerers: how many; more than one only with Celery workers.
    """

    folder: Path
    database_url: str
    dags_folder: Path
    plugins_folder: Path
    users: Mapping[str, str] = field(default_factory=lambda: {"admin": "admin"})
    env: Mapping[str, str] = field(default_factory=dict)
    python_path: tuple[Path, ...] = ()
    parallelism: int = 6
    celery_workers: int = 0
    triggerers: int = 1
    port: int = 0


class LocalAirflow:
    """A running Airflow; a context manager that leaves no process behind."""

    def __init__(self, place: AirflowPlace) -> None:
        self._place = place
        self._home = place.folder.resolve()
        (self._home / "logs").mkdir(parents=True, exist_ok=True)
        self._port = place.port or _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.passwords = self._read_or_make_passwords()
        self._cluster = self._celery_cluster()
        self.env = self._environment()
        self._kept: Kept | None = None

    def start(self) -> None:
        """Migrates the database and starts all components. Raises AirflowNotReadyError."""
        self._migrate()
        program = [sys.executable, "-m", "airflow"]
        # The log servers are left out: they listen on every address, and all components share one log folder.
        extra = {
            "api-server": ["--host", "127.0.0.1", "--port", str(self._port), "--workers", "1"],
            "scheduler": ["--skip-serve-logs"],
            "triggerer": ["--skip-serve-logs"],
        }
        processes = tuple(
            ProcessSpec(name=name, argv=(*program, name, *extra.get(name, [])), log=str(self.log_of(name)))
            for name in COMPONENTS
        )
        if self._cluster is not None:
            processes = (*self._cluster.processes(), *processes)
        spec = KeeperSpec(
            mark=f"airflow-{self._port}-{secrets.token_hex(6)}",
            status=str(self._home / "running.json"),
            cwd=str(self._home),
            env=self.env,
            processes=processes,
        )
        self._kept = Kept(spec, self._home)

    def wait_healthy(self, timeout_s: float = 600.0) -> None:
        """Returns when the API answers, all heartbeats are fresh and our own processes are the ones alive.

        Raises:
            AirflowNotReadyError: not within ``timeout_s``.
        """
        end = time.monotonic() + timeout_s
        trouble = "not asked yet"
        while time.monotonic() < end:
            trouble = self._trouble()
            if not trouble:
                return
            time.sleep(0.25)
        raise AirflowNotReadyError(f"Airflow is not healthy after {timeout_s:.0f} s: {trouble}; logs are in {self._home}")

    def client(self, user: str = "admin") -> AirflowClient:
        """Returns a client that logs in as this user."""
        return AirflowClient(self.url, user, self.passwords[user])

    def pids(self) -> dict[str, int]:
        """Returns the pid of each live component."""
        return {} if self._kept is None else self._kept.pids()

    def restarts(self) -> dict[str, int]:
        """Returns how often components were started again."""
        return {} if self._kept is None else self._kept.restarts()

    def log_of(self, component: str) -> Path:
        """Returns the file that the component's own output goes to."""
        return self._home / f"{component}.log"

    def stop(self) -> None:
        """Ends all processes. Raises KeptProcessesError when one survives."""
        if self._kept is not None:
            self._kept.stop()
            self._kept = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _trouble(self) -> str:
        """Returns what is missing for health, or an empty text."""
        wanted = {*COMPONENTS, *(self._cluster.names if self._cluster else ())}
        missing = wanted - set(self.pids())
        if missing:
            return f"not running: {', '.join(sorted(missing))}"
        # Another server on our port would answer as well: only one that knows our user's password is ours.
        try:
            health = self.client(next(iter(self.passwords))).health()
        except (AirflowApiError, OSError) as error:
            return f"no answer: {error}"
        names = {
            "metadatabase": "database",
            "scheduler": "scheduler",
            "dag_processor": "dag-processor",
            "triggerer": "triggerer",
        }
        ill = [words for name, words in names.items() if (health.get(name) or {}).get("status") != "healthy"]
        return f"unhealthy: {', '.join(ill)}" if ill else ""

    def _migrate(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env={**os.environ, **self.env},
            cwd=self._home,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        (self._home / "migrate.log").write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            raise AirflowNotReadyError(f"airflow db migrate failed; see {self._home / 'migrate.log'}")

    def _read_or_make_passwords(self) -> dict[str, str]:
        path = self._home / "passwords.json"
        known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        wanted = {name: known.get(name) or secrets.token_urlsafe(12) for name in self._place.users}
        path.touch(mode=0o600)
        path.write_text(json.dumps(wanted))
        return wanted

    def _celery_cluster(self) -> CeleryCluster | None:
        place = self._place
        if not place.celery_workers:
            return None
        return CeleryCluster(self._home, workers=place.celery_workers, slots=place.parallelism, triggerers=place.triggerers)

    def _environment(self) -> dict[str, str]:
        """Returns the variables that make the components one Airflow."""
        place = self._place
        database = place.database_url.replace("postgresql+psycopg://", "postgresql://")
        database = database.replace("postgresql://", "postgresql+psycopg://", 1)
        settings = {
            "core": {
                "dags_folder": str(place.dags_folder.resolve()),
                "plugins_folder": str(place.plugins_folder.resolve()),
                "executor": "LocalExecutor",
                "parallelism": str(place.parallelism),
                "load_examples": "False",
                "fernet_key": self._kept_secret("fernet.key", 32),
                "execution_api_server_url": f"{self.url}/execution/",
                "simple_auth_manager_users": ",".join(f"{name}:{role}" for name, role in place.users.items()),
                "simple_auth_manager_passwords_file": str(self._home / "passwords.json"),
            },
            "database": {"sql_alchemy_conn": database, "sql_alchemy_conn_async": database},
            "api": {"base_url": self.url, "expose_config": "False"},
            "api_auth": {"jwt_secret": self._kept_secret("jwt.key", 64)},
            "scheduler": {"scheduler_idle_sleep_time": "0.1", "scheduler_heartbeat_sec": "2"},
            "logging": {"base_log_folder": str(self._home / "logs")},
            "dag_processor": {"refresh_interval": "15", "parsing_processes": "1"},
            "usage_data_collection": {"enabled": "False"},
        }
        if self._cluster is not None:
            for part, pairs in self._cluster.settings(database).items():
                settings[part] = {**settings.get(part, {}), **pairs}
            settings["core"]["parallelism"] = str(place.parallelism * place.celery_workers)
        env = {
            f"AIRFLOW__{part.upper()}__{key.upper()}": value for part, pairs in settings.items() for key, value in pairs.items()
        }
        path = os.pathsep.join([*(str(folder.resolve()) for folder in place.python_path), *_inherited_python_path()])
        return {**env, "AIRFLOW_HOME": str(self._home), "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **place.env}

    def _kept_secret(self, name: str, length: int) -> str:
        """Returns a key of ``length`` bytes, url-safe base64, made once and kept in the folder."""
        path = self._home / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(urlsafe_b64encode(secrets.token_bytes(length)).decode())
        return path.read_text()


def _inherited_python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
