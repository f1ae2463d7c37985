"""A whole rehearsal on loopback: embedded PostgreSQL, the sandbox, a fleet file, Airflow. For the demo and for the live tests."""

import json
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.request import Request, urlopen

import yaml

from hostler.stores import migrate
from hostler.stores.embedded import EmbeddedPostgres
from hostler_sandbox.airflow_client import AirflowClient
from hostler_sandbox.airflow_local import AirflowPlace, LocalAirflow
from hostler_sandbox.keeper import KeeperSpec, ProcessSpec
from hostler_sandbox.kept import Kept

ROOT: Final = Path(__file__).parents[3]
CONNECTION: Final = "sandbox_aws"
_SANDBOX_START_S: Final = 120.0
_AIRFLOW_START_S: Final = 400.0


class StageError(RuntimeError):
    """A part did not come up; the text names its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOptions:
    """What to set up.

    Attributes:
        folder: everything lies in it. seed: picks the zones that are out of stock; None: all have stock.
        deployment: of the fleet file. limits, timing, tenants: its blocks, over the defaults of a rehearsal.
        users: Airflow users, name to role. airflow_env: more environment of Airflow (``AIRFLOW__...``).
        parallelism, celery_workers, triggerers: as ``AirflowPlace`` has them.
        say: is told each step in words.
    """

    folder: Path
    seed: int | None = None
    deployment: str = "rehearsal"
    limits: Mapping[str, Any] = field(default_factory=dict)
    timing: Mapping[str, Any] = field(default_factory=dict)
    tenants: Mapping[str, Any] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=lambda: {"admin": "admin"})
    airflow_env: Mapping[str, str] = field(default_factory=dict)
    sandbox_arguments: tuple[str, ...] = ()
    parallelism: int = 6
    celery_workers: int = 0
    triggerers: int = 1
    say: Callable[[str], None] = lambda _words: None


class Stage:
    """Runs the parts; a context manager that leaves no process behind, whatever happens in it."""

    def __init__(self, options: StageOptions) -> None:
        self.options = options
        self.folder = options.folder.resolve()
        self.fleet_file = self.folder / "fleet.yaml"
        self.sandbox: dict[str, Any] = {}
        self._parts = ExitStack()
        self._airflow: LocalAirflow | None = None

    @property
    def airflow(self) -> LocalAirflow:
        """The running Airflow. Raises StageError before ``start``."""
        if self._airflow is None:
            raise StageError("the stage is not set")
        return self._airflow

    def client(self, user: str = "admin") -> AirflowClient:
        """Returns a client of Airflow's REST API that logs in as this user."""
        return self.airflow.client(user)

    def start(self) -> None:
        """Starts all parts. Raises StageError or AirflowNotReadyError; what had started is ended again."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        say = self.options.say
        self.folder.mkdir(parents=True, exist_ok=True)
        # PostgreSQL may run as another user than root: the way to its folder must be open to it.
        self.folder.chmod(0o711)
        sandbox = self._start_sandbox()
        say("PostgreSQL for the ledger and for Airflow")
        server = EmbeddedPostgres(self.folder / "ledger", is_durable=False)
        self._parts.callback(server.stop)
        server.start()
        migrate.upgrade(server.url())
        say("the sandbox: a cloud on loopback with AWS's real API (simulated)")
        self.sandbox = self._wait_for_sandbox(sandbox)
        self.fleet_file.write_text(yaml.safe_dump(self._fleet(), sort_keys=False))
        say("Airflow: database, api-server, scheduler, dag-processor, triggerer")
        self._airflow = LocalAirflow(self._airflow_place(server.ensure_database("airflow")))
        self._parts.callback(self._airflow.stop)
        self._airflow.start()
        self._airflow.wait_healthy(_AIRFLOW_START_S)

    def stop(self) -> None:
        """Ends all parts, last first. Safe to call twice."""
        self._parts.close()

    def control(self, order: str, **document: Any) -> Any:
        """Sends an order to the sandbox's control API and returns its answer."""
        body = json.dumps(document).encode()
        request = Request(f"{self.sandbox['control_url']}/_sandbox/{order}", data=body, method="POST")  # noqa: S310  # loopback
        with urlopen(request, timeout=30) as answer:  # noqa: S310  # loopback
            return json.loads(answer.read())

    def look(self, what: str) -> Any:
        """Reads ``machines``, ``figures`` or ``journal`` from the sandbox's control API."""
        with urlopen(f"{self.sandbox['control_url']}/_sandbox/{what}", timeout=30) as answer:  # noqa: S310  # loopback
            return json.loads(answer.read())

    def environment(self) -> dict[str, str]:
        """Returns the environment in which ``hostler`` and Airflow work on this stage."""
        connection = {
            "conn_type": "aws",
            "login": "AKIASIMULATED0000000",
            "password": "simulated",
            "extra": {"region_name": "us-east-1", "endpoint_url": self.sandbox["aws_endpoint"]},
        }
        return {
            "HOSTLER_FLEET": str(self.fleet_file),
            f"AIRFLOW_CONN_{CONNECTION.upper()}": json.dumps(connection),
            "AWS_ENDPOINT_URL": self.sandbox["aws_endpoint"],
            "AWS_ACCESS_KEY_ID": "AKIASIMULATED0000000",
            "AWS_SECRET_ACCESS_KEY": "simulated",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _start_sandbox(self) -> Kept:
        folder = self.folder / "sandbox"
        folder.mkdir(exist_ok=True)
        (folder / "sandbox.json").unlink(missing_ok=True)
        seed = () if self.options.seed is None else ("--seed", str(self.options.seed))
        argv = (sys.executable, "-m", "hostler_sandbox", "--state-dir", str(folder), *seed, *self.options.sandbox_arguments)
        spec = KeeperSpec(
            mark=f"sandbox-{secrets.token_hex(6)}",
            status=str(folder / "running.json"),
            cwd=str(folder),
            processes=(ProcessSpec(name="sandbox", argv=argv, log=str(folder / "sandbox.log")),),
        )
        kept = Kept(spec, folder)
        self._parts.callback(kept.stop)
        return kept

    def _wait_for_sandbox(self, kept: Kept) -> dict[str, Any]:
        path = self.folder / "sandbox" / "sandbox.json"
        end = time.monotonic() + _SANDBOX_START_S
        while not path.exists():
            if time.monotonic() > end or kept.restarts():
                raise StageError(f"the sandbox did not start; see {path.with_name('sandbox.log')}")
            time.sleep(0.1)
        facts: dict[str, Any] = json.loads(path.read_text())
        return facts

    def _airflow_place(self, database_url: str) -> AirflowPlace:
        return AirflowPlace(
            folder=self.folder / "airflow",
            database_url=database_url,
            dags_folder=ROOT / "dags",
            plugins_folder=ROOT / "plugins",
            users=self.options.users,
            env={**self.environment(), "AIRFLOW__HOSTLER__RETRY_DELAY_S": "2", **self.options.airflow_env},
            parallelism=self.options.parallelism,
            celery_workers=self.options.celery_workers,
            triggerers=self.options.triggerers,
        )

    def _fleet(self) -> dict[str, Any]:
        """Returns the fleet file of this rehearsal."""
        fixtures = self.sandbox["fixtures"]
        parameter = next(name for name, kind in fixtures["image_parameters"].items() if kind == "bare")
        rehearsal_timing = {"boot_timeout_s": 120, "setup_timeout_s": 300, "heartbeat_timeout_s": 30, "poll_s": 2}
        return {
            "deployment": self.options.deployment,
            "limits": {"usd_per_hour": 400, "usd_per_run": 500, "nodes": 8, **self.options.limits},
            "ledger": {"folder": str(self.folder / "ledger")},
            "keys": {"folder": str(self.folder / "keys")},
            "backup": {
                "uri": f"s3://{fixtures['bucket']}/{self.options.deployment}",
                "region": "us-east-1",
                "endpoint_url": self.sandbox["aws_endpoint"],
            },
            "timing": {**rehearsal_timing, **self.options.timing},
            "clouds": {
                "aws": {
                    "connection": CONNECTION,
                    "regions": ["us-east-1"],
                    "image": f"ssm:{parameter}",
                    "instance_profile": fixtures["instance_profile"],
                    "security_groups": {"tags": fixtures["security_group_tags"]},
                    "reach": {"port": self.sandbox["ssh_port"]},
                }
            },
            "tenants": {"default": {}, **self.options.tenants},
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
