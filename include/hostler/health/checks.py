"""The checks of one accelerator's readings: one set for every source (pure).

``judge_reading`` runs all. A reading that is needed and was asked for but could not be had is ``unknown``; one that does not
apply to the device is no matter; one that was not asked for is not judged.
"""

from collections.abc import Callable
from typing import Final

from hostler.health.checks_memory import (
    check_ecc,
    check_memory_size,
    check_remapped_rows,
    check_repairs,
    check_retired_pages,
)
from hostler.health.checks_state import (
    check_fabric,
    check_fan,
    check_inforom,
    check_mig,
    check_nvlink,
    check_pcie,
    check_persistence,
    check_power,
    check_recovery,
    check_temperature,
    check_throttle,
)
from hostler.health.finding import failed, needed
from hostler.health.reading import CAPTURED, AcceleratorReading, Expectation
from hostler.model.enums import HealthAction
from hostler.model.health import Finding

Check = Callable[[AcceleratorReading, Expectation], list[Finding]]

NOT_JUDGED: Final = ("utilisation_ratio",)
"""Readings that no verdict hangs on, but that must not be taken for 0 when they are not to be had."""


def judge_reading(reading: AcceleratorReading, expectation: Expectation = CAPTURED) -> list[Finding]:
    """Returns what is wrong or not known of one accelerator, in the order of the checks; empty when all is well."""
    if reading.error:
        return [failed("device.error", reading.error, HealthAction.REBOOT_NODE, reading.error, "the device's own words")]
    return [finding for check in CHECKS for finding in check(reading, expectation)]


def unread(reading: AcceleratorReading) -> list[str]:
    """Returns which readings could not be had though no verdict hangs on them, with the device's words."""
    return [f"{field}: {reading.missing[field]}" for field in NOT_JUDGED if field in reading.missing]


def check_name(reading: AcceleratorReading, expectation: Expectation) -> list[Finding]:
    """Judges whether it is the accelerator that was bought."""
    if reading.name is None:
        return needed(reading, "name")
    if not expectation.names or reading.name.lower() in expectation.names:
        return []
    what = f"is a {reading.name}, {expectation.accelerator} was bought"
    return [failed("device.model", what, HealthAction.DRAIN_AND_REPLACE, reading.name, "the request")]


CHECKS: Final[tuple[Check, ...]] = (
    check_name,
    check_ecc,
    check_repairs,
    check_temperature,
    check_throttle,
    check_pcie,
    check_recovery,
    check_inforom,
    check_persistence,
    check_mig,
    check_remapped_rows,
    check_retired_pages,
    check_nvlink,
    check_fabric,
    check_power,
    check_fan,
    check_memory_size,
)
