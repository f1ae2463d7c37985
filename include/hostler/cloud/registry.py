"""Finds drivers by entry point ``hostler.drivers``; a cloud is added with no edit here."""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from hostler.cloud.driver import CloudDriver
from hostler.cloud.errors import CloudConfigError

GROUP = "hostler.drivers"
SETTINGS_GROUP = "hostler.driver_settings"

DriverBuilder = Callable[..., CloudDriver]
"""``build(*, deployment, settings, sessions) -> CloudDriver``; settings is the cloud's part of fleet.yaml."""


def installed_drivers() -> tuple[str, ...]:
    """Returns the names of all installed drivers, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def load_driver(name: str) -> DriverBuilder:
    """Returns the builder of the named driver.

    Raises:
        CloudConfigError: no such driver; the text lists those installed.
        ImportError: the driver is there but broken; its own error.
    """
    found = [point for point in entry_points(group=GROUP) if point.name == name]
    if not found:
        raise CloudConfigError(f"unknown cloud {name!r}; installed drivers: {', '.join(installed_drivers())}")
    builder: Any = found[0].load()
    return builder  # type: ignore[no-any-return]


def settings_models() -> dict[str, Any]:
    """Returns the settings model of each installed driver by cloud name, from entry point ``hostler.driver_settings``."""
    return {point.name: point.load() for point in entry_points(group=SETTINGS_GROUP)}
