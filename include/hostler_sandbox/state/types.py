"""Instance types that the sandbox sells, where, and for how much. All figures are simulated.

Source: EC2 instance type pages and the price table of Karpenter's AWS provider, us-east-1, read 2026-07-20. Spot prices and
the zones that offer a type are made up: a share of the on-demand price that differs by zone.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """One instance type. ``family``: bucket of the vCPU quota (``P``, ``G``, ``standard``)."""

    name: str
    accelerator: str | None
    accelerator_count: int
    vcpu_count: int
    family: str
    usd_per_hour: Decimal
    zone_letters: str


_ROWS: Final = (
    ("p5.48xlarge", "H100", 8, 192, "P", "55.04", "abcd"),
    ("p5en.48xlarge", "H200", 8, 192, "P", "63.296", "bc"),
    ("p4d.24xlarge", "A100", 8, 96, "P", "21.957642", "abcd"),
    ("p4de.24xlarge", "A100-80GB", 8, 96, "P", "27.44705", "ab"),
    ("p3.2xlarge", "V100", 1, 8, "P", "3.06", "abcd"),
    ("p3.16xlarge", "V100", 8, 64, "P", "24.48", "abcd"),
    ("p6-b200.48xlarge", "B200", 8, 192, "P", "113.9328", "b"),
    ("g4dn.xlarge", "T4", 1, 4, "G", "0.526", "abcd"),
    ("g4dn.12xlarge", "T4", 4, 48, "G", "3.912", "abcd"),
    ("g5.xlarge", "A10G", 1, 4, "G", "1.006", "abcd"),
    ("g5.12xlarge", "A10G", 4, 48, "G", "5.672", "abcd"),
    ("g5.48xlarge", "A10G", 8, 192, "G", "16.288", "abcd"),
    ("g6.xlarge", "L4", 1, 4, "G", "0.8048", "abcd"),
    ("g6e.xlarge", "L40S", 1, 4, "G", "1.861", "abc"),
    ("m7i.large", None, 0, 2, "standard", "0.1008", "abcd"),
)

TYPES: Final = {row[0]: TypeFacts(row[0], row[1], row[2], row[3], row[4], Decimal(row[5]), row[6]) for row in _ROWS}
"""Instance type name -> facts."""

REGIONS: Final = ("us-east-1", "us-west-2")
ZONE_LETTERS: Final = "abcd"
SPOT_SHARE: Final = {"a": Decimal("0.36"), "b": Decimal("0.33"), "c": Decimal("0.41"), "d": Decimal("0.38")}
"""Spot price as a share of on-demand, by zone letter."""

DEFAULT_VCPU_QUOTA: Final = {"P": 1920, "G": 1920, "standard": 1920}


def zones_of(facts: TypeFacts, region: str) -> tuple[str, ...]:
    """Returns the zones of a region that offer the type."""
    return tuple(f"{region}{letter}" for letter in facts.zone_letters)


def list_price(facts: TypeFacts, zone: str, capacity_type: str) -> Decimal:
    """Returns USD per hour in a zone for ``on-demand``, ``reserved`` or ``spot``."""
    if capacity_type != "spot":
        return facts.usd_per_hour
    return (facts.usd_per_hour * SPOT_SHARE[zone[-1]]).quantize(Decimal("0.0001"))
