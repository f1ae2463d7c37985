"""Airflow's environment for tests that import it: set before the first import, never pointing at a developer's own Airflow."""

import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def prepare() -> None:
    """Sets the environment once a process. Call it before anything imports airflow."""
    if "HOSTLER_TEST_AIRFLOW" in os.environ:
        return
    home = tempfile.mkdtemp(prefix="hostler-airflow-")
    os.environ.update(
        HOSTLER_TEST_AIRFLOW=home,
        AIRFLOW_HOME=home,
        AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "dags"),
        AIRFLOW__CORE__PLUGINS_FOLDER=str(ROOT / "plugins"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__API__BASE_URL="http://127.0.0.1:1",
        # Nobody is there: tests that need a database start Airflow for real.
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="postgresql+psycopg://nobody@127.0.0.1:1/none",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC="postgresql+psycopg://nobody@127.0.0.1:1/none",
        AIRFLOW__USAGE_DATA_COLLECTION__ENABLED="False",
    )
