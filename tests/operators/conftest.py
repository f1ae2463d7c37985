"""Operators and triggers against a fleet in memory."""

from tests import airflow_home

airflow_home.prepare()  # before anything imports airflow

import pytest
from tests.fake_world import make_world


@pytest.fixture
def world(monkeypatch):
    from hostler_sensors import fleet_access

    made = make_world()
    monkeypatch.setattr(fleet_access, "build", lambda: made.fleet)
    monkeypatch.setattr(fleet_access, "_built", {})
    return made
