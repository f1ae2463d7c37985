"""Everything that can be bought, from the tables that come with Hostler or from price lists of one's own."""

import gc
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Final

from hostler.catalog import layout_alibaba, layout_aws, layout_google, layout_skypilot, quota_codes
from hostler.catalog.agreement import agreed
from hostler.catalog.cells import Cells, text_of
from hostler.catalog.errors import CatalogError
from hostler.catalog.gather import Gathering, Source
from hostler.catalog.prices import COLUMNS as COLUMNS_OF_PRICES
from hostler.catalog.prices import priced, read_price_rows
from hostler.catalog.rates import COLUMNS as RATE_COLUMNS
from hostler.catalog.rates import Rates, rate_of, shipped_rates
from hostler.catalog.unpriced import unpriced
from hostler.model.offering import Offering

SHIPPED: Final = ("aws_2026-07-20.csv", "alibaba_2024-10-16.csv")
"""Tables in ``data/`` that are read when no path is given: those whose licence lets them be passed on."""

_SUFFIXES: Final = (".csv", ".csv.gz")
_DAY: Final = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")

_LAYOUTS: Final[tuple[tuple[frozenset[str], Callable[[Cells, Source, Gathering], None]], ...]] = (
    (layout_skypilot.COLUMNS, layout_skypilot.read_skypilot),
    (layout_aws.COLUMNS, layout_aws.read_aws),
    (layout_alibaba.COLUMNS, layout_alibaba.read_alibaba),
    (layout_google.COLUMNS, layout_google.read_google_machines),
    (COLUMNS_OF_PRICES, read_price_rows),
    (quota_codes.COLUMNS, quota_codes.read_quota_codes),
)
"""Columns that a layout must have -> what reads it; the first that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """What can be bought.

    Attributes:
        offerings: one a key (``Offering.key``), in the order of the tables. faults: rows that were left out because they
            are broken; empty unless that was allowed. remarks: what is odd in a source, in words.
        loaded_at_source: table's name -> the day its prices are of; None when neither its name nor its rows say.
    """

    offerings: tuple[Offering, ...]
    faults: tuple[CatalogError, ...] = ()
    remarks: tuple[str, ...] = ()
    loaded_at_source: Mapping[str, datetime | None] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Returns the catalog in a form that is quick to read again; see ``catalog.compiled``."""
        from hostler.catalog.compiled import packed

        return packed(self)

    @classmethod
    def from_bytes(cls, data: bytes, accelerators: Collection[str] | None = None) -> "Catalog":
        """Returns the catalog of ``to_bytes``, or only the offerings with these accelerators; None means all.

        Raises:
            CompiledError: the bytes are of another version or damaged; make them again from the price lists.
        """
        from hostler.catalog.compiled import unpacked

        return unpacked(data, accelerators)


def load_catalog(paths: Iterable[str | PathLike[str]] = (), *, rates: Rates | None = None, keep_going: bool = False) -> Catalog:
    """Returns what the price lists offer.

    Args:
        paths: files (``.csv``, ``.csv.gz``) or folders of them; each is read by its heading, whatever its name. A day in the
            name (``2026-05-20``) is the day of its prices. Empty: the tables that come with Hostler.
        rates: of other currencies than USD; None takes those that come with Hostler. A list with the columns Currency,
            UsdPerUnit, AsOf and Source among ``paths`` adds to them.
        keep_going: leave broken rows and files out and name them in ``Catalog.faults``.

    Raises:
        CatalogError: a row or file is broken and ``keep_going`` is false; names file, line and field.
    """
    with _collector_paused():
        return _load([Path(path) for path in paths], shipped_rates() if rates is None else rates, keep_going=keep_going)


def _load(wanted: Sequence[Path], rates: Rates, *, keep_going: bool) -> Catalog:
    """Does the work of ``load_catalog``."""
    into = Gathering(rates=dict(rates), keep_going=keep_going)
    tables = _from_paths(wanted, into) if wanted else _shipped()
    # Rates first: the other tables need them, wherever in the order they stand.
    for read, cells, source in sorted(_with_layout(tables, into), key=lambda table: table[0] is not _read_rates):
        try:
            read(cells, source, into)
        except CatalogError as error:
            into.refuse(error)
    known, passed_over = priced(agreed(into.offerings), into.prices, into.rates)
    return Catalog(
        offerings=(*known, *unpriced(known)),
        faults=tuple(into.faults),
        remarks=(*into.remarks, *passed_over),
        loaded_at_source=into.dates,
    )


def shipped_paths() -> tuple[Path, ...]:
    """Returns the files that are read when no path is given, to be read together with others."""
    folder = files("hostler.catalog").joinpath("data")
    return tuple(Path(str(folder.joinpath(name))) for name in SHIPPED)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keeps the garbage collector still: looking through some ten thousand new records that all stay doubles the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_Table = tuple[Callable[[Cells, Source, Gathering], None], Cells, Source]


def _with_layout(tables: Iterable[tuple[str, Callable[[], str]]], into: Gathering) -> list[_Table]:
    """Returns the tables with what reads each; one that cannot be read is refused."""
    found = []
    for name, text in tables:
        try:
            cells = Cells(text(), name)
            read = _reader_for(cells)
        except CatalogError as error:
            into.refuse(error)
            continue
        source = Source(name=name, priced_at=_day_in(name))
        into.dates[name] = source.priced_at
        found.append((read, cells, source))
    return found


def _reader_for(cells: Cells) -> Callable[[Cells, Source, Gathering], None]:
    """Returns what reads a table with this heading. Raises CatalogError: no layout has it."""
    heading = set(cells.heading)
    if heading.issuperset(RATE_COLUMNS):
        return _read_rates
    for columns, read in _LAYOUTS:
        if columns <= heading:
            return read
    least = min((columns - heading for columns, _ in _LAYOUTS), key=lambda missing: (len(missing), sorted(missing)))
    problem = f"no price list has these columns; the nearest layout also has {', '.join(sorted(least))}"
    raise CatalogError(cells.source, cells.heading_line, problem)


def _read_rates(cells: Cells, source: Source, into: Gathering) -> None:
    """Adds rates; the later one of a currency counts."""
    added = dict(into.rates)
    for line, row in into.rows(cells):
        try:
            rate = rate_of(dict(zip(cells.heading, row, strict=True)))
        except ValueError as error:
            into.refuse(CatalogError(source.name, line, str(error)))
            continue
        added[rate.currency] = rate
    into.rates = added


def _from_paths(paths: Sequence[Path], into: Gathering) -> list[tuple[str, Callable[[], str]]]:
    """Returns name and text of each file; a folder stands for the price lists in it, by name."""
    found: list[tuple[str, Callable[[], str]]] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(item for item in path.iterdir() if item.name.endswith(_SUFFIXES))
            if not inside:
                into.refuse(CatalogError(path.name, 0, f"is a folder without {' or '.join(_SUFFIXES)} files"))
        else:
            inside = [path]
        found.extend((item.name, lambda item=item: text_of(item)) for item in inside)  # type: ignore[misc]
    return found


def _shipped() -> list[tuple[str, Callable[[], str]]]:
    folder = files("hostler.catalog").joinpath("data")
    return [(name, lambda name=name: folder.joinpath(name).read_text(encoding="utf-8")) for name in SHIPPED]  # type: ignore[misc]


def _day_in(name: str) -> datetime | None:
    """Returns the day in a file's name, as its first moment in UTC; None when there is none."""
    match = _DAY.search(name)
    try:
        return datetime.fromisoformat(match[1]).replace(tzinfo=UTC) if match else None
    except ValueError:
        return None
