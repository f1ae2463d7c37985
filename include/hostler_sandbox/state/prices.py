"""Simulated prices: on-demand by type from a table, spot as a share of it that differs by zone and day.

On-demand source: ``data/aws_on_demand_2026-07-20.csv`` (list prices of us-east-1 in USD, Linux, shared tenancy). Regions without a row
of their own take that of us-east-1. A type without any row costs an assumed amount per vCPU. Spot shares are made up: published spot
discounts lie between 10 and 90 percent.
"""

import csv
import hashlib
import threading
from decimal import Decimal
from importlib import resources
from typing import Final

ASSUMED_PER_VCPU: Final = Decimal("0.048")
"""USD per vCPU and hour for a type that the table lacks; near the list price of general-purpose types."""

_TABLE: Final = "aws_on_demand_2026-07-20.csv"
_LOWEST_SHARE: Final = Decimal("0.30")
_SHARE_STEPS: Final = 40
_CENT_SHARE: Final = Decimal("0.01")
_SPOT_DIGITS: Final = Decimal("0.0001")


def load_table() -> dict[str, Decimal]:
    """Returns USD per hour by instance type."""
    text = resources.files("hostler_sandbox.state").joinpath("data", _TABLE).read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {row["instance_type"]: Decimal(row["usd_per_hour"]) for row in rows}


class Prices:
    """What a machine costs an hour, in USD. Thread-safe."""

    def __init__(self) -> None:
        self._table = load_table()
        self._lock = threading.Lock()
        self._on_demand: dict[str, Decimal] = {}
        self._spot: dict[tuple[str, str], Decimal] = {}

    def on_demand(self, instance_type: str, vcpu_count: int) -> Decimal:
        """Returns the on-demand price."""
        with self._lock:
            if instance_type in self._on_demand:
                return self._on_demand[instance_type]
        return self._table.get(instance_type, ASSUMED_PER_VCPU * vcpu_count)

    def spot(self, zone: str, instance_type: str, vcpu_count: int) -> Decimal:
        """Returns the spot price in a zone: as set, else a share of 30 to 69 percent that the names decide."""
        with self._lock:
            if (zone, instance_type) in self._spot:
                return self._spot[zone, instance_type]
        step = hashlib.sha256(f"{zone}/{instance_type}".encode()).digest()[0] % _SHARE_STEPS
        share = _LOWEST_SHARE + step * _CENT_SHARE
        return (self.on_demand(instance_type, vcpu_count) * share).quantize(_SPOT_DIGITS)

    def set_on_demand(self, instance_type: str, usd_per_hour: Decimal) -> None:
        """Sets a price for machines launched from now on. Raises ValueError unless above 0."""
        self._check(usd_per_hour)
        with self._lock:
            self._on_demand[instance_type] = usd_per_hour

    def set_spot(self, zone: str, instance_type: str, usd_per_hour: Decimal) -> None:
        """Sets a zone's spot price. Raises ValueError unless above 0."""
        self._check(usd_per_hour)
        with self._lock:
            self._spot[zone, instance_type] = usd_per_hour

    def clear(self) -> None:
        """Back to the table."""
        with self._lock:
            self._on_demand.clear()
            self._spot.clear()

    @staticmethod
    def _check(usd_per_hour: Decimal) -> None:
        if not (usd_per_hour.is_finite() and usd_per_hour > 0):
            raise ValueError(f"usd_per_hour: {usd_per_hour}: must be above 0")
