"""What other currencies are worth in USD, with the day the rate is of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import Final

from hostler.catalog.cells import Cells, decimal_of
from hostler.catalog.errors import CatalogError

COLUMNS: Final = ("Currency", "UsdPerUnit", "AsOf", "Source")
TABLE: Final = "rates.csv"

_EXACT: Final = Decimal("0.000001")
_MOST: Final = 1_000_000
"""The dearest unit of money is worth a few USD, one of account some thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What one unit of a currency is worth. ``as_of``: the day; ``source``: who says so."""

    currency: str
    usd_per_unit: Decimal
    as_of: date
    source: str

    def in_usd(self, amount: Decimal) -> Decimal:
        """Returns the amount in USD, to a millionth."""
        return (amount * self.usd_per_unit).quantize(_EXACT)


Rates = Mapping[str, Rate]
"""Currency code -> its rate. USD needs none."""


@lru_cache(maxsize=1)
def shipped_rates() -> Rates:
    """Returns the rates that come with Hostler. Raises CatalogError: the installed file is damaged; install again."""
    return read_rates(files("hostler.catalog").joinpath("data", TABLE).read_text(encoding="utf-8"), source=TABLE)


def read_rates(text: str, *, source: str) -> Rates:
    """Returns the rates of a table.

    Args:
        text: CSV with the columns of the installed table. source: its name in errors.

    Raises:
        CatalogError: a row is broken; names the line.
    """
    found: dict[str, Rate] = {}
    cells = Cells(text, source)
    if missing := [column for column in COLUMNS if column not in cells.heading]:
        raise CatalogError(source, cells.heading_line, f"column {', '.join(missing)} is missing")
    for line, row in cells:
        try:
            rate = rate_of(dict(zip(cells.heading, row, strict=True)))
        except ValueError as error:
            raise CatalogError(source, line, str(error)) from None
        found[rate.currency] = rate
    return found


def rate_of(row: Mapping[str, str]) -> Rate:
    """Returns one row as a record. Raises ValueError naming the field."""
    currency = row["Currency"].strip()
    if len(currency) != 3 or not currency.isascii() or not currency.isupper():  # noqa: PLR2004  # ISO 4217
        raise ValueError(f"Currency {currency!r} is not a code of three capitals")
    worth = decimal_of(row["UsdPerUnit"])
    if worth is None or not 0 < worth < _MOST:
        raise ValueError(f"UsdPerUnit {row['UsdPerUnit']!r} is not a number above 0 and below {_MOST}")
    try:
        as_of = date.fromisoformat(row["AsOf"].strip())
    except ValueError:
        raise ValueError(f"AsOf {row['AsOf']!r} is not a day of the form 2026-12-01") from None
    return Rate(currency=currency, usd_per_unit=worth, as_of=as_of, source=row["Source"].strip())
