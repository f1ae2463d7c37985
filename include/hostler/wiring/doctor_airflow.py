"""Whether the Airflow of this machine can run Hostler's Dags. Airflow is asked in a process of its own: it takes seconds to load."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hostler.cloud.doctor import Check, fail, ok, unknown, warn

_FACTS: Final = "hostler.connections.airflow_facts"
_LOAD_S: Final = 60.0
_HEALTH_S: Final = 5.0
_LEAST_RETRIES: Final = 8
_KNOWN_EXECUTORS: Final = (
    "LocalExecutor",
    "CeleryExecutor",
    "KubernetesExecutor",
    "EdgeExecutor",
    "AwsEcsExecutor",
    "AwsBatchExecutor",
)
_RERUN: Final = "run it where Airflow runs, with its environment"


def is_there() -> bool:
    """True when this machine looks like one where Airflow is set up."""
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    return (home / "airflow.cfg").is_file() or any(name.startswith("AIRFLOW__") for name in os.environ)


def check_airflow() -> Iterator[Check]:
    """Yields the checks of Airflow's settings; nothing where there is no Airflow."""
    if not is_there():
        return
    try:
        done = subprocess.run(
            [sys.executable, "-m", _FACTS],
            capture_output=True,
            text=True,
            timeout=_LOAD_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        facts: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        # What it printed may quote its settings: only the kind of error is told.
        yield unknown("airflow", f"its settings could not be read: {type(error).__name__}", _RERUN)
        return
    yield from judge(facts, _health(str(facts.get("base_url") or "")))


def judge(facts: Mapping[str, Any], health: Mapping[str, Any] | str) -> Iterator[Check]:
    """Judges Airflow's settings; pure.

    Args:
        facts: what ``connections.airflow_facts`` prints. health: the API server's own health document, or why there is none.
    """
    yield ok("airflow", f"version {facts.get('version')}")
    yield _executor(str(facts.get("executor") or ""))
    yield _database(str(facts.get("database") or ""), str(facts.get("executor") or ""))
    if facts.get("has_plugin"):
        yield ok("airflow plugin", "hostler_plugin is in the plugins folder")
    else:
        fix = "copy plugins/hostler_plugin.py into [core] plugins_folder; without it links and the record of who acted are missing"
        yield warn("airflow plugin", f"hostler_plugin.py is not in {facts.get('plugins_folder')}", fix)
    retries = facts.get("retries")
    if isinstance(retries, int) and retries < _LEAST_RETRIES:
        fix = f"set [hostler] retries to {_LEAST_RETRIES} or more"
        yield warn("airflow retries", f"[hostler] retries is {retries}: may not outlast an API server outage", fix)
    yield from _alive(health)


def _executor(name: str) -> Check:
    if any(known in name for known in _KNOWN_EXECUTORS):
        return ok("airflow executor", name)
    return unknown(
        "airflow executor", f"{name or 'none named'}: Hostler was not tried on it", "LocalExecutor and CeleryExecutor are"
    )


def _database(scheme: str, executor: str) -> Check:
    name = "airflow database"
    if scheme.startswith("sqlite"):
        text = "SQLite, which loses its scheduler under load"
        return fail(name, text, "use PostgreSQL: [database] sql_alchemy_conn")
    if scheme.startswith("postgresql"):
        return ok(name, "PostgreSQL")
    if not scheme and "LocalExecutor" not in executor:
        return unknown(name, "not to be seen from here", "run it where the scheduler runs")
    return warn(name, f"{scheme or 'none named'}: Hostler was tried on PostgreSQL only", "use PostgreSQL")


def _alive(health: Mapping[str, Any] | str) -> Iterator[Check]:
    """Yields what the API server says of the parts that Hostler's Dags need."""
    needs = {
        "triggerer": "start `airflow triggerer`: waits and runs of Hostler live in it",
        "scheduler": "start `airflow scheduler`",
        "dag_processor": "start `airflow dag-processor`",
    }
    for part, fix in needs.items():
        name = f"airflow {part}"
        if isinstance(health, str):
            yield unknown(name, health, "start the API server, or set [api] base_url to where it answers")
            continue
        status = (health.get(part) or {}).get("status")
        if status == "healthy":
            yield ok(name, "healthy")
        else:
            yield fail(name, f"{status or 'none has ever run'}", fix)


def _health(base_url: str) -> Mapping[str, Any] | str:
    """Returns the API server's health document, which needs no token; or why there is none."""
    if not base_url.startswith(("http://", "https://")):
        return "[api] base_url is not set"
    address = f"{base_url.rstrip('/')}/api/v2/monitor/health"
    try:
        with urllib.request.urlopen(address, timeout=_HEALTH_S) as answer:  # noqa: S310 - checked above
            found: Mapping[str, Any] = json.load(answer)
    except (OSError, ValueError) as error:
        return f"the API server does not answer: {getattr(error, 'reason', type(error).__name__)}"
    return found
