"""Prices as the clouds' own price APIs tell them: the port that asks, the file that keeps them, and how they reach a catalog."""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, Protocol

from hostler.catalog.cells import Cells, Numbers
from hostler.catalog.errors import CatalogError
from hostler.catalog.gather import USD, Gathering, Source, column_indexes
from hostler.catalog.quotas import uses_of
from hostler.catalog.rates import Rates
from hostler.catalog.specs import machine_specs
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

HEADING: Final = (
    "Cloud",
    "Region",
    "Zone",
    "InstanceType",
    "CapacityType",
    "Currency",
    "PricePerHour",
    "PricedAt",
    "PriceSource",
    "Doubts",
)
COLUMNS: Final = frozenset(HEADING)

_BETWEEN_DOUBTS: Final = " | "


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """The price of a whole machine.

    Attributes:
        zone: empty means every zone of the region. price_per_hour: in ``currency``; above zero.
        priced_at: from when on the cloud says it holds, or when it was asked. source: which price API said so.
        doubts: why it should not be trusted unseen; empty when there is none.
    """

    cloud: str
    region: str
    zone: str
    instance_type: str
    capacity_type: CapacityType
    currency: str
    price_per_hour: Decimal
    priced_at: datetime
    source: str
    doubts: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str, CapacityType]:
        """What it is the price of."""
        return (self.cloud, self.region, self.zone, self.instance_type, self.capacity_type)


class PriceSource(Protocol):
    """A cloud's own price API."""

    def fetch(self, wanted: Mapping[str, Sequence[str]], now: datetime) -> tuple[PriceRow, ...]:
        """Returns what the cloud asks for machines, on demand and on spot; what has no price is not among them.

        Args:
            wanted: region -> instance types. now: aware UTC.

        Raises:
            CloudError: the list is not whole; use nothing of it, try again as the type says.
        """
        ...


PriceKey = tuple[str, str, str, str, CapacityType]


def text_of_rows(rows: Iterable[PriceRow]) -> str:
    """Returns the rows as a price list that ``load_catalog`` reads, in an order of their own: equal rows, equal text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADING)
    for row in sorted(rows, key=lambda item: item.key):
        plain = (row.cloud, row.region, row.zone, row.instance_type, row.capacity_type.value, row.currency)
        words = (str(row.price_per_hour), row.priced_at.isoformat(), row.source, _BETWEEN_DOUBTS.join(row.doubts))
        writer.writerow([*plain, *words])
    return out.getvalue()


def keep(path: Path, rows: Iterable[PriceRow]) -> None:
    """Puts the rows in the place of what was there; a reader sees the old list or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text_of_rows(rows))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def read_kept(path: Path) -> tuple[PriceRow, ...]:
    """Returns the rows that are kept; empty when there are none yet.

    Raises:
        CatalogError: the file is damaged; names the line. Remove it, and the next refresh makes a new one.
    """
    if not path.exists():
        return ()
    into = Gathering(rates={}, keep_going=False)
    read_price_rows(Cells(path.read_text(encoding="utf-8"), path.name), Source(name=path.name, priced_at=None), into)
    return tuple(into.prices)


def read_price_rows(cells: Cells, source: Source, into: Gathering) -> None:
    """Reads one list of this layout. Raises CatalogError: a row is broken and nothing may be."""
    at = column_indexes(cells, *HEADING)
    for line, row in into.rows(cells):
        try:
            into.prices.append(_row_of([row[index].strip() for index in at], into.numbers))
        except ValueError as error:
            into.refuse(CatalogError(source.name, line, str(error)))


def priced(
    offerings: Sequence[Offering], rows: Iterable[PriceRow], rates: Rates
) -> tuple[tuple[Offering, ...], tuple[str, ...]]:
    """Puts the clouds' own prices in the place of those of published lists.

    A price for a whole region holds for its zones that have none of their own. What the lists do not have is added where its
    type is known from elsewhere.

    Returns:
        The offerings, and a remark for each type that is not known.
    """
    by_key = {row.key: row for row in rows}
    if not by_key:
        return tuple(offerings), ()
    used: set[PriceKey] = set()
    changed = [_repriced(item, by_key, used, rates) for item in offerings]
    known: dict[tuple[str, str], Offering] = {}
    for item in offerings:
        known.setdefault((item.cloud, item.instance_type), item)
    remarks = []
    for key, row in by_key.items():
        if key in used:
            continue
        like = known.get((row.cloud, row.instance_type)) or _from_spec(row)
        if like is None:
            remarks.append(f"{row.source}: {row.cloud} {row.instance_type} is passed over: what it has is not known")
            continue
        changed.append(_offered(like, row, rates))
    return tuple(changed), tuple(dict.fromkeys(remarks))


def with_known_prices(offerings: Iterable[Offering], rows: Mapping[PriceKey, PriceRow], rates: Rates) -> tuple[Offering, ...]:
    """Returns what a driver lists with accepted prices filled in.

    On-demand prices are replaced; a spot price that the cloud has just told stays, for it is the newer one.
    """
    changed = []
    for item in offerings:
        is_live = item.capacity_type is CapacityType.SPOT and item.price_usd_per_hour is not None
        kind = CapacityType.SPOT if item.capacity_type is CapacityType.SPOT else CapacityType.ON_DEMAND
        row = None if is_live else _row_for(item, kind, rows)
        changed.append(item if row is None else _with_price(item, row, rates))
    return tuple(changed)


def rows_of(offerings: Iterable[Offering]) -> dict[PriceKey, PriceRow]:
    """Returns the prices of price lists as rows, to fill gaps with."""
    rows = (
        PriceRow(
            cloud=item.cloud,
            region=item.region,
            zone=item.zone,
            instance_type=item.instance_type,
            capacity_type=item.capacity_type,
            currency=item.currency,
            price_per_hour=item.price_in_currency_per_hour,
            priced_at=item.priced_at or datetime.fromtimestamp(0, UTC),
            source=item.price_source,
            doubts=item.doubts,
        )
        for item in offerings
        if item.price_usd_per_hour is not None and item.price_in_currency_per_hour is not None
    )
    return {row.key: row for row in rows}


def _row_for(item: Offering, kind: CapacityType, rows: Mapping[PriceKey, PriceRow]) -> PriceRow | None:
    own = rows.get((item.cloud, item.region, item.zone, item.instance_type, kind))
    return own or rows.get((item.cloud, item.region, "", item.instance_type, kind))


def _repriced(item: Offering, rows: Mapping[PriceKey, PriceRow], used: set[PriceKey], rates: Rates) -> Offering:
    row = _row_for(item, item.capacity_type, rows)
    if row is None:
        return item
    used.add(row.key)
    return _with_price(item, row, rates)


def _with_price(item: Offering, row: PriceRow, rates: Rates) -> Offering:
    rate = rates.get(row.currency)
    usd = row.price_per_hour if row.currency == USD else rate.in_usd(row.price_per_hour) if rate else None
    doubts = row.doubts if usd is not None else (*row.doubts, f"no conversion rate for {row.currency} is known")
    return replace(
        item,
        price_usd_per_hour=usd,
        currency=row.currency,
        price_in_currency_per_hour=row.price_per_hour,
        price_source=row.source,
        priced_at=row.priced_at,
        doubts=doubts,
    )


def _offered(like: Offering, row: PriceRow, rates: Rates) -> Offering:
    """Returns an offering of a known type at another place or of another capacity type."""
    item = replace(
        like,
        region=row.region,
        zone=row.zone,
        capacity_type=row.capacity_type,
        is_available=True,
        unavailable_reason=None,
        quotas=(),
    )
    return _with_price(replace(item, quotas=uses_of(item)), row, rates)


def _from_spec(row: PriceRow) -> Offering | None:
    spec = machine_specs().get((row.cloud, row.instance_type))
    if spec is None:
        return None
    return Offering(
        cloud=spec.cloud,
        region=row.region,
        zone=row.zone,
        instance_type=spec.instance_type,
        capacity_type=row.capacity_type,
        accelerator=spec.accelerator,
        accelerator_count=spec.accelerator_count,
        vcpu_count=spec.vcpu_count,
        memory_mib=spec.memory_mib,
        price_usd_per_hour=None,
        accelerator_memory_mib=spec.accelerator_memory_mib,
        network_mbps=spec.network_mbps,
        nic_count=spec.nic_count,
        local_nvme_gib=spec.local_nvme_gib,
        interconnect=spec.interconnect,
    )


def _row_of(fields: Sequence[str], numbers: Numbers) -> PriceRow:
    """Returns one row. Raises ValueError naming the field."""
    cloud, region, zone, instance_type, kind, currency, cell, at, source, doubts = fields
    if not cloud or not region or not instance_type:
        raise ValueError("Cloud, Region and InstanceType must not be empty")
    price = numbers.price(cell, "PricePerHour")
    if price is None:
        raise ValueError(f"PricePerHour {cell!r} is not a price")
    try:
        capacity_type = CapacityType(kind)
    except ValueError:
        raise ValueError(f"CapacityType {kind!r} is none of {', '.join(CapacityType)}") from None
    if len(currency) != 3 or not currency.isupper():  # noqa: PLR2004  # ISO 4217
        raise ValueError(f"Currency {currency!r} is not a code of three capitals")
    try:
        priced_at = datetime.fromisoformat(at)
    except ValueError:
        raise ValueError(f"PricedAt {at!r} is not a time of the form 2026-12-01T00:00:00+00:00") from None
    return PriceRow(
        cloud=cloud,
        region=region,
        zone=zone,
        instance_type=instance_type,
        capacity_type=capacity_type,
        currency=currency,
        price_per_hour=price,
        priced_at=priced_at if priced_at.tzinfo else priced_at.replace(tzinfo=UTC),
        source=source,
        doubts=tuple(doubts.split(_BETWEEN_DOUBTS)) if doubts else (),
    )
