"""Operators and triggers against a fleet in memory."""

from tests import airflow_home

airflow_home.prepare()  # before anything imports airflow

from tests.airflow_world import world

__all__ = ["world"]
