"""A batch of prices beside what is known already: the table that the checks of a refresh look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from hostler.catalog.gather import USD
from hostler.catalog.prices import PriceKey, PriceRow
from hostler.catalog.rates import Rates
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

MOST_APART: Final = 0.20
"""A price that is further from the last accepted one, or from a second source, than this part of the lower price."""

COLUMNS: Final = (
    "cloud",
    "region",
    "zone",
    "instance_type",
    "capacity_type",
    "currency",
    "expected_currency",
    "place",
    "price_per_hour",
    "usd_per_accelerator_hour",
    "on_demand_jump",
    "spot_jump",
    "gap_to_second_source",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBatch:
    """What one cloud told, and what it is compared with.

    Attributes:
        wanted: region -> instance types that were asked for. last: the batch that was accepted before; empty: the first.
        lists: what published price lists have, by (cloud, region, instance type), on demand: the second source.
        accelerator_counts: by instance type; 0 or missing where a machine has a part of one or it is not known.
    """

    cloud: str
    rows: tuple[PriceRow, ...]
    wanted: Mapping[str, Sequence[str]]
    last: tuple[PriceRow, ...]
    lists: Mapping[tuple[str, str, str], Offering]
    accelerator_counts: Mapping[str, int]
    rates: Rates

    @property
    def places(self) -> list[str]:
        """Returns every region that was asked for, as the column ``place`` has it."""
        return sorted(f"{self.cloud}/{region}" for region in self.wanted)

    def table(self) -> dict[str, list[Any]]:
        """Returns the batch by column; a number that there is nothing to compare for is None."""
        last = {row.key: row for row in self.last}
        table: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        for row in self.rows:
            for name, value in self._cells(row, last).items():
                table[name].append(value)
        return table

    def with_doubts(self) -> tuple[PriceRow, ...]:
        """Returns the rows, those that a second source contradicts with the doubt in words."""
        found = []
        for row in self.rows:
            second, gap = self._second(row), self._gap(row)
            if second is None or gap is None or gap <= MOST_APART:
                found.append(row)
                continue
            words = (
                f"sources disagree by {gap * 100:.0f} %: {row.price_per_hour} {row.currency} ({row.source}) and "
                f"{second.price_in_currency_per_hour} {second.currency} ({second.price_source})"
            )
            found.append(replace(row, doubts=(*row.doubts, words)))
        return tuple(found)

    def _cells(self, row: PriceRow, last: Mapping[PriceKey, PriceRow]) -> dict[str, Any]:
        jump = _jump(row, last.get(row.key))
        is_spot = row.capacity_type is CapacityType.SPOT
        count = self.accelerator_counts.get(row.instance_type, 0)
        usd = self._usd(row)
        return {
            "cloud": row.cloud,
            "region": row.region,
            "zone": row.zone,
            "instance_type": row.instance_type,
            "capacity_type": row.capacity_type.value,
            "currency": row.currency,
            "expected_currency": _expected_currency(row),
            "place": f"{row.cloud}/{row.region}",
            "price_per_hour": float(row.price_per_hour),
            "usd_per_accelerator_hour": float(usd) / count if usd is not None and count else None,
            "on_demand_jump": None if is_spot else jump,
            "spot_jump": jump if is_spot else None,
            "gap_to_second_source": self._gap(row),
        }

    def _usd(self, row: PriceRow) -> Decimal | None:
        if row.currency == USD:
            return row.price_per_hour
        rate = self.rates.get(row.currency)
        return rate.in_usd(row.price_per_hour) if rate else None

    def _second(self, row: PriceRow) -> Offering | None:
        if row.capacity_type is not CapacityType.ON_DEMAND:
            return None
        return self.lists.get((row.cloud, row.region, row.instance_type))

    def _gap(self, row: PriceRow) -> float | None:
        """Returns how far the second source is from the price; None when there is none to compare."""
        second, usd = self._second(row), self._usd(row)
        if second is None or second.price_usd_per_hour is None or usd is None:
            return None
        return apart(usd, second.price_usd_per_hour)


def apart(one: Decimal, other: Decimal) -> float | None:
    """Returns the difference as a part of the lower of two prices; None when the lower is not above zero."""
    low, high = sorted((one, other))
    return float((high - low) / low) if low > 0 else None


def _jump(row: PriceRow, before: PriceRow | None) -> float | None:
    """Returns how far the price has moved; None for a new one. Another currency is another price."""
    if before is None or before.currency != row.currency:
        return None
    return apart(row.price_per_hour, before.price_per_hour)


def _expected_currency(row: PriceRow) -> str:
    """Returns the currency that the cloud sells in there. Alibaba's is the account's, so that any answer stands."""
    if row.cloud == "alibaba":
        return row.currency
    return "CNY" if row.cloud == "aws" and row.region.startswith("cn-") else USD
