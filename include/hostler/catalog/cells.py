"""Reads CSV text: a heading, then rows with their line numbers; remarks and empty lines are skipped."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final

from hostler.catalog.errors import CatalogError

MAX_BYTES: Final = 64 * 1024 * 1024
"""A price list is some MB at most; more, unpacked, is a mistake or an attack."""


def text_of(path: Path) -> str:
    """Returns the text of a ``.csv`` or ``.csv.gz`` file. Raises CatalogError: it cannot be read."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise CatalogError(path.name, 0, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if b"\0" in raw:
        raise CatalogError(path.name, raw[: raw.index(b"\0")].count(b"\n") + 1, "is not UTF-8 text: it holds a NUL")
    if len(raw) > MAX_BYTES:
        raise CatalogError(path.name, 0, f"is larger than {MAX_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CatalogError(path.name, line, "is not UTF-8 text") from None


class Cells:
    """Rows of one table.

    Attributes:
        heading: the column names. heading_line: where they stand.

    Iterating yields (line, cells) for each row. A row of another width is yielded too: who reads the layout refuses it.
    """

    def __init__(self, text: str, source: str) -> None:
        """Reads up to the heading. Raises CatalogError: there is none, or it names a column twice."""
        self.source = source
        self._reader = csv.reader(io.StringIO(text, newline=""))
        self.heading: tuple[str, ...] = ()
        self.heading_line = 0
        for line, cells in self:
            self.heading, self.heading_line = tuple(cell.strip() for cell in cells), line
            if twice := sorted({name for name in self.heading if name and self.heading.count(name) > 1}):
                raise CatalogError(source, line, f"column {', '.join(twice)} stands there twice")
            return
        raise CatalogError(source, 0, "is empty")

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Yields the rows that are left. Raises CatalogError: from here on it is no CSV."""
        reader = self._reader
        try:
            for cells in reader:
                if cells and cells[0][:1] != "#" and (len(cells) > 1 or cells[0].strip()):
                    yield reader.line_num, cells
        except csv.Error as error:
            raise CatalogError(self.source, reader.line_num, str(error)) from None


class Numbers:
    """Turns cells into numbers; equal texts are read once, since price lists repeat themselves."""

    def __init__(self) -> None:
        self._prices: dict[str, Decimal | None] = {"": None}
        self._whole: dict[str, int] = {}
        self._mib: dict[str, int] = {}

    def price(self, cell: str, column: str) -> Decimal | None:
        """Returns the price; None for an empty cell and for zero, which both mean that none is known.

        Raises:
            ValueError: it is no price: not a number, not finite, or negative.
        """
        try:
            return self._prices[cell]
        except KeyError:
            self._prices[cell] = found = _price(cell, column)
            return found

    def whole(self, cell: str, column: str, *, least: int) -> int:
        """Returns a whole number, which may be written as ``12.0``. Raises ValueError: it is none, or below ``least``."""
        found = self._whole.get(cell)
        if found is None:
            self._whole[cell] = found = _whole(cell, column, least)
        if found < least:
            raise ValueError(f"{column} {cell!r} is not a whole number of {least} or more")
        return found

    def mib(self, cell: str, column: str) -> int:
        """Returns GiB, possibly with a fraction, as MiB. Raises ValueError: it is no number above 0."""
        found = self._mib.get(cell)
        if found is None:
            value = decimal_of(cell)
            whole = 0 if value is None else int(value * 1024)
            if whole < 1:
                raise ValueError(f"{column} {cell!r} is not a number above 0")
            self._mib[cell] = found = whole
        return found


_BEYOND: Final = 10**12
"""No number of a price list is as large; one that is would only overflow whatever is made of it."""


def decimal_of(cell: str) -> Decimal | None:
    """Returns the number in the cell; None when it holds none, or one beyond any price, count or size."""
    try:
        value = Decimal(cell.strip())
    except ArithmeticError:
        return None
    return value if cell.isascii() and "_" not in cell and value.is_finite() and abs(value) < _BEYOND else None


def _price(cell: str, column: str) -> Decimal | None:
    if not cell.strip():
        return None
    value = decimal_of(cell)
    if value is None or value < 0:
        raise ValueError(f"{column} {cell!r} is not a price")
    return value or None


def _whole(cell: str, column: str, least: int) -> int:
    value = decimal_of(cell)
    if value is None or value != value.to_integral_value() or abs(value) > 10**9:
        raise ValueError(f"{column} {cell!r} is not a whole number of {least} or more")
    return int(value)
