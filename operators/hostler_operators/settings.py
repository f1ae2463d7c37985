"""Section ``[hostler]`` of Airflow's configuration, as the Dags need it; read while a Dag is parsed, without any other I/O."""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, conf
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from hostler.model.request_schema import REQUEST_FIELDS


def retry_arguments() -> dict[str, Any]:
    """Returns the retry arguments of every step, for ``default_args``.

    Eight exponential retries outlast an API server that is away for minutes: with two short ones, release spent both
    without one line run (measured on Airflow 3.3.2). A permanent failure raises AirflowFailException and uses none.
    """
    first_s = conf.getfloat("hostler", "retry_delay_s", fallback=10.0)
    return {
        "retries": conf.getint("hostler", "retries", fallback=8),
        "retry_delay": timedelta(seconds=first_s),
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(seconds=6 * first_s),
    }


def max_active_runs() -> int:
    """Returns how many runs of the lifecycle Dag may be active at once."""
    return conf.getint("hostler", "max_active_runs", fallback=16)


def lateness_alert() -> DeadlineAlert:
    """Returns the Dag's deadline alert: a run that lasts longer than ``run_expected_s`` is told of, once.

    A request's own ``deadline`` is held by the ledger, not by this: Airflow's deadlines are the same for all runs of a Dag.
    """
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(seconds=conf.getint("hostler", "run_expected_s", fallback=7 * 86400)),
        callback=AsyncCallback("hostler_sensors.lateness.tell_late"),
        name="hostler-late",
    )


def schedule_of(option: str, fallback: str) -> str:
    """Returns a cron expression of the section."""
    return conf.get("hostler", option, fallback=fallback)


def request_params() -> dict[str, Param]:
    """Returns the Params of a request: the trigger form, and what the REST API checks before a run exists."""
    return {
        name: Param(field["default"], description=field["description"], **field["schema"])
        for name, field in REQUEST_FIELDS.items()
    }


def unfit_database() -> str | None:
    """Returns why Airflow's own database will not do, in words; None when it will, or when this worker cannot see it.

    Airflow on SQLite answered 500 to 7 of 20 parallel posts and lost its scheduler and its triggerer to "database is locked"
    (measured on 3.3.2). Only the LocalExecutor can run on it, and its workers see the setting; others need not have it.
    """
    is_local = "LocalExecutor" in (conf.get("core", "executor", fallback="") or "")
    address = conf.get("database", "sql_alchemy_conn", fallback="") or ""
    if is_local and address.startswith("sqlite"):
        return "Airflow runs on SQLite, which loses its scheduler under load; allowed: PostgreSQL ([database] sql_alchemy_conn)"
    return None
