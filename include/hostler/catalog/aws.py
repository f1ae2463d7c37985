"""Accelerator instance types of Amazon EC2, read from the table in ``data/``."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from hostler.catalog.errors import CatalogError
from hostler.model.accelerators import ACCELERATORS

TABLE: Final = "aws_2026-07-20.csv"

_YUAN_REGIONS: Final = "cn-"
"""Prices of the two regions in China are in yuan. Source: a g5.xlarge is 9.51 there and 1.006 in us-east-1, same table."""

_COLUMNS: Final = (
    "InstanceType",
    "Region",
    "OnDemandPerHour",
    "vCPUs",
    "MemoryMiB",
    "GpuName",
    "GpuManufacturer",
    "GpuCount",
    "GpuMemoryMiB",
    "LocalNvmeGB",
    "NetworkMbps",
    "Efa",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsInstanceType:
    """One instance type.

    Attributes:
        accelerator: the short name of ``model.accelerators``; for one that is not there, the table's own word in lower case.
        accelerator_count: 0 for a type that has a part of one accelerator only.
        accelerator_memory_mib: of one accelerator; 0 when the table does not say. efa_count: network interfaces with EFA.
        prices_usd_per_hour: on-demand, by region; a region that is not in it has no known price.
    """

    instance_type: str
    accelerator: str
    accelerator_count: int
    accelerator_memory_mib: int
    vcpu_count: int
    memory_mib: int
    network_mbps: int
    efa_count: int
    prices_usd_per_hour: Mapping[str, Decimal]

    def price_usd_per_hour(self, region: str) -> Decimal | None:
        """Returns the on-demand price in the region; None when none is known, which is never free."""
        return self.prices_usd_per_hour.get(region)


AwsCatalog = Mapping[str, AwsInstanceType]
"""Instance type's name -> its row, by name."""


@lru_cache(maxsize=1)
def load() -> AwsCatalog:
    """Returns the table that comes with Hostler.

    Raises:
        CatalogError: the installed file is damaged; install again.
    """
    text = files("hostler.catalog").joinpath("data", TABLE).read_text(encoding="utf-8")
    return read(text, source=TABLE)


def read(text: str, *, source: str) -> AwsCatalog:
    """Returns the rows of a table, one entry an instance type.

    Args:
        text: CSV with the columns of the installed table; lines that begin with ``#`` are remarks.
        source: its name in errors.

    Raises:
        CatalogError: a row is broken or contradicts an earlier one of its type; names the line.
    """
    types: dict[str, AwsInstanceType] = {}
    for line, row in _rows(text, source):
        found = _parse(row, source, line)
        known = types.get(found.instance_type)
        if known is not None:
            if replace(known, prices_usd_per_hour={}) != replace(found, prices_usd_per_hour={}):
                raise CatalogError(source, line, f"{found.instance_type} is described otherwise in an earlier row")
            found = replace(found, prices_usd_per_hour=_joined(known, found, source, line))
        types[found.instance_type] = found
    return MappingProxyType({name: types[name] for name in sorted(types)})


def with_accelerators(catalog: AwsCatalog, accelerator: str, count: int) -> tuple[AwsInstanceType, ...]:
    """Returns the types that have exactly ``count`` of the accelerator, by name; empty when there are none."""
    return tuple(row for row in catalog.values() if row.accelerator == accelerator and row.accelerator_count == count)


def _rows(text: str, source: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (line number, row) for each row after the heading."""
    heading: list[str] | None = None
    for line, words in enumerate(text.splitlines(), start=1):
        if not words.strip() or words.startswith("#"):
            continue
        cells = next(csv.reader([words]))
        if heading is None:
            heading = cells
            if missing := [column for column in _COLUMNS if column not in heading]:
                raise CatalogError(source, line, f"column {', '.join(missing)} is missing")
            continue
        if len(cells) != len(heading):
            raise CatalogError(source, line, f"{len(cells)} cells, expected {len(heading)}")
        yield line, dict(zip(heading, cells, strict=True))


def _parse(row: Mapping[str, str], source: str, line: int) -> AwsInstanceType:
    """Returns one row as a record with the price of its region."""
    name = row["InstanceType"].strip()
    if "." not in name:
        raise CatalogError(source, line, f"InstanceType {name!r} is not of the form family.size")

    def whole(column: str, *, least: int) -> int:
        cell = row[column].strip()
        if not cell and least == 0:
            return 0
        if not cell.isascii() or not cell.isdigit() or int(cell) < least:
            raise CatalogError(source, line, f"{column} {cell!r} is not a whole number of {least} or more")
        return int(cell)

    memory = whole("GpuMemoryMiB", least=0)
    return AwsInstanceType(
        instance_type=name,
        accelerator=_short_name(row["GpuName"].strip().lower(), memory),
        accelerator_count=whole("GpuCount", least=0),
        accelerator_memory_mib=memory,
        vcpu_count=whole("vCPUs", least=1),
        memory_mib=whole("MemoryMiB", least=1),
        network_mbps=whole("NetworkMbps", least=0),
        efa_count=whole("Efa", least=0),
        prices_usd_per_hour=_price(row, source, line),
    )


def _price(row: Mapping[str, str], source: str, line: int) -> dict[str, Decimal]:
    """Returns the row's price by its region; empty when it has none, or none in USD."""
    region, cell = row["Region"].strip(), row["OnDemandPerHour"].strip()
    if not cell:
        return {}
    try:
        price = Decimal(cell)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or price < 0 or not region:
        raise CatalogError(source, line, f"OnDemandPerHour {cell!r} in Region {region!r} is not a price in a region")
    return {} if region.startswith(_YUAN_REGIONS) or price == 0 else {region: price}


def _joined(known: AwsInstanceType, found: AwsInstanceType, source: str, line: int) -> dict[str, Decimal]:
    """Returns the prices of both; a region that comes twice must have one price."""
    for region, price in found.prices_usd_per_hour.items():
        if known.prices_usd_per_hour.get(region, price) != price:
            raise CatalogError(source, line, f"{found.instance_type} has another price in {region} in an earlier row")
    return {**known.prices_usd_per_hour, **found.prices_usd_per_hour}


def _short_name(word: str, memory_mib: int) -> str:
    """Returns the short name for the table's word; two models of one chip differ by their memory (a100 with 81920 MiB)."""
    by_spelling = {spelling: name for name, spellings in ACCELERATORS.items() for spelling in spellings}
    with_memory = f"{word}-{memory_mib // 1024}gb"
    return by_spelling.get(with_memory) or by_spelling.get(word) or word
