"""Prints what a doctor wants to know of Airflow's settings, as one line of JSON: ``python -m hostler.connections.airflow_facts``.

A program of its own, since loading Airflow takes seconds and the command line never does. No address, no password is in it.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any


def facts() -> dict[str, Any]:
    """Returns version, executor, kind of database (the scheme of its address), API server, plugin and our retries."""
    from airflow.configuration import conf

    plugins = Path(conf.get("core", "plugins_folder", fallback="") or ".")
    return {
        "version": version("apache-airflow-core"),
        "executor": conf.get("core", "executor", fallback=""),
        "database": (conf.get("database", "sql_alchemy_conn", fallback="") or "").partition(":")[0],
        "base_url": conf.get("api", "base_url", fallback="") or "http://localhost:8080",
        "plugins_folder": str(plugins),
        "has_plugin": any(plugins.glob("**/hostler_plugin.py")),
        "retries": conf.getint("hostler", "retries", fallback=8),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(facts()) + "\n")
