"""One rehearsal for all live tests: PostgreSQL, the sandbox's cloud and a whole Airflow, started once a session.

The scenarios are long and mostly wait: all are started at once, in threads, when the first test asks; each test then looks at
what its own scenario saw.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import MappingProxyType
from typing import Any

import pytest
from tests.live.scenarios import CORE, SCENARIOS
from tests.live.theatre import SECRET, SECRET_NAME, Theatre

from hostler_sandbox.demo.stage import Stage, StageOptions


def options(folder: Path, airflow_env: Mapping[str, str] = MappingProxyType({}), **changes: Any) -> StageOptions:
    """The rehearsal of the live tests."""
    return StageOptions(
        folder=folder,
        limits={"nodes": 64, "usd_per_hour": 10_000},
        # Machines that run these tests may be busy: what is late here must not count as lost.
        timing={"boot_timeout_s": 240, "setup_timeout_s": 600, "heartbeat_timeout_s": 120},
        users={"admin": "admin", "ops": "op", "eyes": "viewer"},
        airflow_env={
            "AIRFLOW__HOSTLER__RECONCILE_SCHEDULE": "* * * * *",
            "AIRFLOW__HOSTLER__RUN_SCHEDULE": "* * * * *",
            "AIRFLOW__HOSTLER__RUN_EXPECTED_S": "20",
            # A dozen runs share two cores: what Airflow does while it idles would be a third of the work.
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
            f"AIRFLOW_VAR_{SECRET_NAME.upper()}": SECRET,
            **airflow_env,
        },
        **{"parallelism": 6, **changes},
    )


@pytest.fixture(scope="session")
def stage():
    """The running rehearsal."""
    # Not in pytest's own folder: that one is closed to others, again and again, by each pytest that starts; and where the tests
    # run as root, PostgreSQL is another user and must be able to pass through.
    with (
        TemporaryDirectory(prefix="hostler-live-", ignore_cleanup_errors=True) as folder,
        Stage(options(Path(folder))) as running,
    ):
        yield running


class Played:
    """Name of a scenario -> a call that waits for what it saw, or raises what went wrong in it.

    Attributes:
        names: the scenarios that are played.
    """

    def __init__(self, theatre: Theatre, names: tuple[str, ...]) -> None:
        self.names = names
        self._theatre = theatre
        self._futures: dict[str, Future[dict[str, object]]] = {name: Future() for name in names}
        for name in names:
            # Daemons: a session that is broken off does not wait for scenarios whose stage is gone.
            Thread(target=self._play, args=(name,), name=f"scenario {name}", daemon=True).start()

    def __call__(self, name: str) -> dict[str, object]:
        if name not in self._futures:
            pytest.skip(f"scenario {name} is played by `make live` only")
        return self._futures[name].result(timeout=1200)

    def _play(self, name: str) -> None:
        try:
            self._futures[name].set_result(SCENARIOS[name](self._theatre))
        except BaseException as error:  # noqa: BLE001 - the test that asks for the scenario raises it
            self._futures[name].set_exception(error)


@pytest.fixture(scope="session")
def played(stage, pytestconfig):
    """All scenarios that are asked for, under way."""
    theatre = Theatre(stage)
    theatre.wait_for_dags()
    return Played(theatre, CORE if pytestconfig.getoption("live") == "core" else tuple(SCENARIOS))
