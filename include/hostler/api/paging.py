"""From all rows to the ones that a table shows: filter, sort, cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hostler.api.rows import WORST_FIRST, Row

MAX_LIMIT: Final = 200
"""Rows of one answer at most: what a browser draws without being felt."""

_RANKS: Final = {"verdict": {verdict.value: rank for rank, verdict in enumerate(WORST_FIRST)}}
"""Fields that are sorted by meaning, not by letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a table asks for.

    Attributes:
        words: all of them must be found in a row; empty finds all rows.
        sort: a field of the rows. is_descending: turns the order round; rows without a value come last either way.
        offset: rows to leave out, 0 or more. limit: 1 to MAX_LIMIT.
    """

    words: tuple[str, ...]
    sort: str
    is_descending: bool
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows of a table. ``total``: how many match. ``offset``: of the first one here; moved back when rows have gone since."""

    rows: Sequence[Row]
    total: int
    offset: int


def cut(rows: Iterable[Row], wish: Wish) -> Page:
    """Returns the wished part. ``rows`` come in the order that decides between equals."""
    found = [row for row in rows if all(word in row.text for word in wish.words)]
    known = [row for row in found if row.fields[wish.sort] is not None]
    known.sort(key=lambda row: _key(wish.sort, row.fields[wish.sort]), reverse=wish.is_descending)
    ordered = [*known, *(row for row in found if row.fields[wish.sort] is None)]
    last_page = max(0, (len(ordered) - 1) // wish.limit * wish.limit)
    offset = min(wish.offset, last_page)
    return Page(rows=ordered[offset : offset + wish.limit], total=len(ordered), offset=offset)


def _key(field: str, value: Any) -> Any:
    if field in _RANKS:
        return _RANKS[field][value]
    return value.lower() if isinstance(value, str) else value
