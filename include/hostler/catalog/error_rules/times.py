"""Reads the times that notices carry: ISO 8601 with or without zone, and the dates of mail and HTTP. Without a zone: UTC."""

import re
from datetime import UTC, datetime
from typing import Final

_ISO: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_MAIL: Final = (
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} \d{4}"
    r" \d\d:\d\d:\d\d(?: (?:GMT|UTC|Z|[+-]\d{4}))?"
)
TIME: Final = rf"(?:{_ISO}|{_MAIL})"
"""Pattern of one time, in any of the forms that ``utc`` reads; without regard to case."""

_PARTS: Final = re.compile(r"(?i)(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,]\d+)? ?(Z|[+-]\d\d:?\d\d)?$")


def utc(text: str) -> str | None:
    """Returns the time as ``2026-12-01T12:00:00Z``, fractions of a second dropped; None when it is none."""
    found = _PARTS.match(text.strip())
    try:
        if found:
            date, minutes, seconds, zone = found.groups()
            offset = "+00:00" if zone is None or zone in "Zz" else zone
            moment = datetime.fromisoformat(f"{date}T{minutes}{seconds or ':00'}{offset}")
        else:
            from email.utils import parsedate_to_datetime  # slow to import, and seldom needed

            moment = parsedate_to_datetime(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
