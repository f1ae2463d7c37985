"""What the readers of the layouts share: where rows go, what a broken one does, and how a price becomes USD."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from hostler.catalog.cells import Cells, Numbers
from hostler.catalog.errors import CatalogError
from hostler.catalog.rates import Rate, Rates
from hostler.model.offering import Offering

if TYPE_CHECKING:
    from hostler.catalog.prices import PriceRow

USD = "USD"


@dataclass(slots=True, kw_only=True)
class Gathering:
    """What has been read so far.

    Attributes:
        rates: of other currencies. keep_going: a broken row is kept in ``faults``; otherwise it ends the reading.
        prices: from the clouds' own price APIs, which take the place of those of ``offerings``.
        offerings: in the order of the files. faults: broken rows. remarks: what a reader should know of a source.
        dates: table's name -> the day its prices are of; None when it does not say.
    """

    rates: Rates
    keep_going: bool
    numbers: Numbers = field(default_factory=Numbers)
    offerings: list[Offering] = field(default_factory=list)
    prices: "list[PriceRow]" = field(default_factory=list)
    faults: list[CatalogError] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    dates: dict[str, datetime | None] = field(default_factory=dict)

    def refuse(self, error: CatalogError) -> None:
        """Keeps the fault, or raises it when nothing may be broken."""
        if not self.keep_going:
            raise error
        self.faults.append(error)

    def rows(self, cells: Cells) -> Iterator[tuple[int, list[str]]]:
        """Yields (line, cells) of the rows that are as wide as the heading; the others are refused."""
        width = len(cells.heading)
        for line, row in cells:
            if len(row) != width:
                self.refuse(CatalogError(cells.source, line, f"{len(row)} cells, expected {width}"))
            else:
                yield line, row

    def rate(self, currency: str) -> Rate | None:
        """Returns the currency's rate; None for one that none is known of. USD must not be asked."""
        return self.rates.get(currency)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One table: its name, and the day its prices are of (None: not told)."""

    name: str
    priced_at: datetime | None

    def at(self, line: int, other: int | None = None) -> str:
        """Returns where a price stands, as ``name:12`` or, for a sum of two rows, ``name:12+34``."""
        return f"{self.name}:{line}" if other is None else f"{self.name}:{line}+{other}"


def column_indexes(cells: Cells, *names: str) -> tuple[int, ...]:
    """Returns where each column stands. Raises CatalogError naming those that are missing."""
    if missing := [name for name in names if name not in cells.heading]:
        raise CatalogError(cells.source, cells.heading_line, f"column {', '.join(missing)} is missing")
    return tuple(cells.heading.index(name) for name in names)


def converted(price: Decimal | None, rate: Rate | None) -> Decimal | None:
    """Returns the price in USD; None when there is none or no rate is known."""
    return None if price is None or rate is None else rate.in_usd(price)
