"""The Dags as Airflow parses them."""

from tests import airflow_home

airflow_home.prepare()  # before anything imports airflow

import pytest


@pytest.fixture(scope="session")
def bag():
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(airflow_home.ROOT / "dags"))
