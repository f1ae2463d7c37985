"""What Airflow asks of an installed provider: its name, and the settings of section ``[hostler]``."""

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Returns the provider's metadata (entry point ``apache_airflow_provider``). No connection type: the clouds' are used."""
    return {
        "package-name": "hostler",
        "name": "Hostler",
        "description": "The life of rented accelerator nodes: provision, validate, train, back up, release, account.",
        "config": {
            "hostler": {
                "description": "How Hostler's Dags run. What they buy and where is in fleet.yaml.",
                "options": {
                    "retry_delay_s": _option(
                        "10",
                        "float",
                        "Seconds before a step's first retry; doubled by each retry, at most six times as long.",
                    ),
                    "retries": _option(
                        "8", "integer", "Retries of each step; fewer than 8 may not outlast an API server outage."
                    ),
                    "reconcile_schedule": _option("*/5 * * * *", "string", "Cron expression of hostler_fleet_reconcile."),
                    "price_schedule": _option("17 4 * * *", "string", "Cron expression of hostler_price_refresh."),
                    "scale_down_schedule": _option("*/15 * * * *", "string", "Cron expression of hostler_scale_down."),
                    "cost_sweep_schedule": _option("41 5 * * *", "string", "Cron expression of hostler_cost_sweep."),
                    "log_rotation_schedule": _option("23 * * * *", "string", "Cron expression of hostler_log_rotation."),
                    "run_expected_s": _option(
                        "604800", "integer", "A lifecycle run that lasts longer than this many seconds is told of (`run.late`)."
                    ),
                    "run_schedule": _option("0 3 * * *", "string", "Cron expression of hostler_scheduled_run."),
                    "max_active_runs": _option("16", "integer", "Runs of hostler_node_lifecycle that may be active at once."),
                },
            }
        },
    }


def _option(default: str, kind: str, text: str) -> dict[str, Any]:
    return {"description": text, "version_added": "0.1.0", "type": kind, "example": None, "default": default}
