"""Measured performance against its floor: one rule for the logs of all tests (pure)."""

import re
from collections.abc import Iterable
from typing import Final

from hostler.health.catalog import Floor, floor
from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import cut
from hostler.model.accelerators import ACCELERATORS
from hostler.model.enums import HealthAction
from hostler.model.health import Finding

WARN_ABOVE_FLOOR_RATIO: Final = 0.05
"""So near above the floor is worth a look. Source: Azure/azurehpc-health-checks warns there, read 2026-12-01."""

_MODELS: Final = ("GB300", "GB200", "B300", "B200", "H200", "H100", "A100", "V100", "L40S", "L40", "L4", "A10G", "A10", "T4")
_JOINED: Final = re.compile(r"SXM|HBM3|HGX|NVL\d*\b|GB[23]00|\bB[23]00\b|\bH200\b", re.IGNORECASE)


def model_of(name: str) -> str:
    """Returns the short name of an accelerator as a device spells it; empty when none is known."""
    low = name.strip().lower()
    for short, spellings in ACCELERATORS.items():
        if low in spellings:
            return short
    found = next((model for model in _MODELS if re.search(rf"\b{model}\b", name, re.IGNORECASE)), "")
    return "A100-80GB" if found == "A100" and "80GB" in name.upper() else found


def is_joined(names: Iterable[str]) -> bool:
    """True when the devices' names say that they are joined by NVLink."""
    return any(_JOINED.search(name) for name in names)


def against(metric: str, value: float, limit: Floor | None, *, where: str, evidence: str) -> Finding:
    """Returns failed below the floor, degraded close above it, a note well above it, unknown where no floor is known."""
    code = f"performance.{metric}"
    if limit is None:
        return unknown(
            code, f"{where}: {value:g}; no floor is known to judge it by", cut(evidence), "hostler.health.catalog floors"
        )
    said = f"{where}: {value:g} {limit.unit}, floor {limit.value:g}"
    if value < limit.value:
        return failed(code, f"{said}: repeat it once, alone", HealthAction.DRAIN_AND_DIAG, cut(evidence), limit.source)
    if value < limit.value * (1 + WARN_ABOVE_FLOOR_RATIO):
        return degraded(code, f"{said}: close to it", cut(evidence), limit.source)
    return noted(code, said, cut(evidence), limit.source)


def floor_for(metric: str, *, accelerator: str = "", joined: bool = False, scope: str = "node") -> Floor | None:
    """Returns the floor of a metric for devices of which only name and joint are known."""
    if accelerator and not joined:
        accelerator = "pcie"
    return floor(metric, accelerator=accelerator, scope=scope)
