"""A fleet in memory behind ``fleet_access``, for tests of operators, sensors and triggers."""

import pytest
from tests.fake_world import World, make_world


@pytest.fixture
def world(monkeypatch) -> World:
    from hostler_sensors import fleet_access

    made = make_world()
    monkeypatch.setattr(fleet_access, "build", lambda: made.fleet)
    monkeypatch.setattr(fleet_access, "_built", {})
    return made
