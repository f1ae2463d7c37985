"""Airflow's connections, from the environment; no database."""

from tests import airflow_home

airflow_home.prepare()  # before anything imports airflow
