"""Accelerators of a probe document, version 1, as readings (pure). Strict: what is not as the probe writes it is an error."""

from collections.abc import Mapping
from typing import Any, Final

from hostler.health.reading import AcceleratorReading

DOCUMENT_VERSION: Final = 1

_NUMBERS: Final = (
    "temperature_c", "temperature_margin_c", "temperature_slowdown_c", "temperature_slowdown_margin_c", "utilisation_ratio",
    "throttle_mask", "ecc_volatile_uncorrectable_count", "ecc_aggregate_uncorrectable_count", "remapped_correctable_count",
    "remapped_uncorrectable_count", "pcie_width", "pcie_width_max", "nvlink_active_count", "nvlink_count",
)  # fmt: skip
_FLAGS: Final = (
    "is_ecc_enabled", "is_ecc_pending", "is_sram_threshold_exceeded", "is_remap_pending", "has_remap_failed", "is_persistent",
    "is_mig_enabled",
)  # fmt: skip
_TEXTS: Final = ("name", "recovery_action", "error")
_LATER: Final = (
    "pcie_generation", "pcie_generation_max", "memory_total_mib", "memory_used_mib", "ecc_sram_correctable_count",
    "ecc_dram_correctable_count",
)  # fmt: skip
"""Numbers that a document may lack."""
_WITHOUT_REASON: Final = (
    "name", "ecc_volatile_uncorrectable_count", "temperature_c", "throttle_mask", "is_remap_pending", "has_remap_failed",
    "nvlink_active_count",
)  # fmt: skip
"""Needed ones: unknown even where the probe forgot to say why."""


def probe_reading(device: Mapping[str, Any]) -> AcceleratorReading:
    """Returns the readings of one accelerator of the document.

    Raises:
        KeyError, TypeError: a field is absent, or is not of its kind.
    """
    values: dict[str, Any] = {}
    for field in _NUMBERS:
        values[field] = _typed(field, device[field], (int, float))
    for field in _FLAGS:
        values[field] = _typed(field, device[field], bool)
    for field in _TEXTS:
        values[field] = _typed(field, device[field], str)
    for field in _LATER:
        values[field] = _typed(field, device.get(field), (int, float))
    missing = dict(_typed("missing", device["missing"], Mapping) or {})
    for field in _WITHOUT_REASON:
        if values[field] is None:
            missing.setdefault(field, "no reason given")
    return AcceleratorReading(
        index=_typed("index", device["index"], int),
        pci=_typed("pci_bus_id", device["pci_bus_id"], str),
        uuid=_typed("uuid", device.get("uuid"), str),
        missing={str(field): str(reason) for field, reason in missing.items()},
        **values,
    )


def _typed(field: str, value: Any, kind: type | tuple[type, ...]) -> Any:
    if value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
        return value
    raise TypeError(f"{field} is {value!r}")
