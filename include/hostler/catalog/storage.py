"""What volumes and addresses cost, from a table with its sources. A kind or a region that is not in it has no known price."""

import csv
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Final

HOURS_PER_MONTH: Final = Decimal(730)
"""As clouds' own calculators have it: 8,760 hours in 12 months."""

ANYWHERE: Final = "*"
ADDRESS: Final = "address"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePrice:
    """One row: parts that are not charged are 0."""

    usd_per_gib_month: Decimal
    free_iops: int
    usd_per_iops_month: Decimal
    free_mibps: int
    usd_per_mibps_month: Decimal
    usd_per_hour: Decimal


def volume_usd_per_month(
    cloud: str, region: str, kind: str, *, size_gib: int, iops: int | None = None, mibps: int | None = None
) -> Decimal | None:
    """Returns what a volume costs a month, whether or not it is attached to a machine that runs; None: no price is known.

    Args:
        iops, mibps: as provisioned; None where the kind has none of its own.
    """
    row = _row(cloud, region, kind)
    if row is None:
        return None
    more_iops, more_mibps = max(0, (iops or 0) - row.free_iops), max(0, (mibps or 0) - row.free_mibps)
    return (
        row.usd_per_gib_month * size_gib + row.usd_per_iops_month * more_iops + row.usd_per_mibps_month * more_mibps
    ).quantize(Decimal("0.0001"))


def address_usd_per_month(cloud: str, region: str) -> Decimal | None:
    """Returns what a public address costs a month; None: no price is known."""
    row = _row(cloud, region, ADDRESS)
    return None if row is None else row.usd_per_hour * HOURS_PER_MONTH


def _row(cloud: str, region: str, kind: str) -> StoragePrice | None:
    known = _rows()
    return known.get((cloud, region, kind)) or known.get((cloud, ANYWHERE, kind))


@cache
def _rows() -> dict[tuple[str, str, str], StoragePrice]:
    with (files("hostler.catalog") / "data" / "storage_prices.csv").open(encoding="utf-8") as source:
        return {(row["cloud"], row["region"], row["kind"]): _parsed(row) for row in csv.DictReader(source)}


def _parsed(row: dict[str, str]) -> StoragePrice:
    return StoragePrice(
        usd_per_gib_month=Decimal(row["usd_per_gib_month"] or 0),
        free_iops=int(row["free_iops"] or 0),
        usd_per_iops_month=Decimal(row["usd_per_iops_month"] or 0),
        free_mibps=int(row["free_mibps"] or 0),
        usd_per_mibps_month=Decimal(row["usd_per_mibps_month"] or 0),
        usd_per_hour=Decimal(row["usd_per_hour"] or 0),
    )
