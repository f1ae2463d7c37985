"""Plain tables for terminals."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal


def render(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns an aligned table; only the headings when there are no rows."""
    widths = [max(len(heading), *(len(row[index]) for row in rows), 0) for index, heading in enumerate(headings)]
    lines = [headings, *rows]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def usd(amount: Decimal | None) -> str:
    """Returns an amount with two digits; ``-`` when it is not known."""
    return "-" if amount is None else f"{amount:.2f}"


def ago(moment: datetime | None, now: datetime) -> str:
    """Returns how long ago, such as ``2h05m``; ``-`` when never."""
    return "-" if moment is None else span(now - moment)


def span(length: timedelta) -> str:
    """Returns a length of time in its two largest units; negative ones as ``0s``."""
    seconds = max(0, int(length.total_seconds()))
    for size, big, small_size, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            return f"{seconds // size}{big}{seconds % size // small_size:02d}{small}"
    return f"{seconds}s"
