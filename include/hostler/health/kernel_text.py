"""What surrounds the message of a kernel log line: its time, and the JSON of the journal (pure).

Read are dmesg (uptime or date in brackets), dmesg with levels, journalctl short and ISO, syslog with and without a year,
RFC 5424, /dev/kmsg and the JSON of journalctl. A date without a year is never given one: such times are only compared.
"""

import json
import re
from calendar import timegm
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

MAX_LINE_CHARS: Final = 8 * 1024
"""The kernel's own lines end at 1 KiB; what comes after this is not looked at."""
MAX_JSON_CHARS: Final = 256 * 1024

_YEAR_S: Final = 366 * 86_400.0
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_KMSG = re.compile(r"\d{1,4},\d{1,20},(\d{1,18}),[^;]{0,200};")
_UPTIME = re.compile(r"\[\s{0,16}(\d{1,10}\.\d{1,9})(?:\s{0,8}[CT@]\d{1,6})?\]")
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?",
)
_DATED = re.compile(r"([A-Z][a-z]{2})\s{1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.\d{1,9})? (\d{4})\b")
_YEARLESS = re.compile(r"\b([A-Z][a-z]{2})\s{1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)\b")
_HEAD_CHARS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a line was written, to be compared with others of the same clock.

    Attributes:
        clock: ``uptime``, ``date``, or ``yearless``. at_s: seconds of that clock; for ``yearless`` those of the year.
    """

    clock: str
    at_s: float

    def distance_s(self, other: "Moment") -> float | None:
        """Returns how far apart two moments are; None when their clocks differ. The end of December is near to January."""
        if self.clock != other.clock:
            return None
        apart = abs(self.at_s - other.at_s)
        return min(apart, _YEAR_S - apart) if self.clock == "yearless" else apart


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """A line taken apart: its message (with what prefix is left) and its moment; None when it tells none."""

    message: str
    moment: Moment | None


def read_text(line: str) -> KernelText:
    """Returns the message and the moment of one line, of whatever form; never raises."""
    if line[:64].lstrip().startswith('{"') or '"MESSAGE"' in line[:4096]:
        found = _journal(line[:MAX_JSON_CHARS])
        if found is not None:
            return found
    message = line[:MAX_LINE_CHARS]
    return KernelText(message=message, moment=_moment(message[:_HEAD_CHARS]))


def _journal(line: str) -> KernelText | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    message = next((entry[key] for key in ("MESSAGE", "message", "msg", "log", "text", "line") if key in entry), None)
    if message is None:
        return None
    text = _as_text(message)[:MAX_LINE_CHARS]
    return KernelText(message=text, moment=_journal_moment(entry) or _moment(text[:_HEAD_CHARS]))


def _as_text(message: Any) -> str:
    """The journal writes a message that is no valid UTF-8 as a list of its bytes."""
    if isinstance(message, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in message):  # noqa: PLR2004 - a byte
        return bytes(message).decode("utf-8", "replace")
    return message if isinstance(message, str) else json.dumps(message)


def _journal_moment(entry: dict[str, Any]) -> Moment | None:
    for key, clock in (
        ("_SOURCE_MONOTONIC_TIMESTAMP", "uptime"),
        ("__REALTIME_TIMESTAMP", "date"),
        ("__MONOTONIC_TIMESTAMP", "uptime"),
    ):
        value = entry.get(key)
        if isinstance(value, (str, int)) and str(value).isascii() and str(value).isdigit():
            return Moment(clock=clock, at_s=int(str(value)[:20]) / 1e6)
    return None


def _moment(head: str) -> Moment | None:
    found = _KMSG.match(head)
    if found:
        return Moment(clock="uptime", at_s=int(found[1]) / 1e6)
    # The kernel's own uptime goes before the date that the log daemon added: it has the finer resolution.
    found = _UPTIME.search(head)
    if found:
        return Moment(clock="uptime", at_s=float(found[1]))
    found = _ISO.search(head)
    if found:
        return _iso(found[0])
    found = _DATED.search(head)
    if found:
        return _calendar("date", int(found[6]), found)
    found = _YEARLESS.search(head)
    return _calendar("yearless", 2000, found) if found else None


def _iso(text: str) -> Moment | None:
    try:
        at = datetime.fromisoformat(text.replace(",", ".").replace(" ", "T", 1).replace(" ", ""))
    except ValueError:
        return None
    aware_s = timegm(at.utctimetuple()) + at.microsecond / 1e6
    return Moment(clock="date", at_s=aware_s)


def _calendar(clock: str, year: int, found: "re.Match[str]") -> Moment | None:
    name = found[1].lower()
    if name not in _MONTHS:
        return None
    month = _MONTHS.index(name) + 1
    try:
        at = datetime(year, month, int(found[2]), int(found[3]), int(found[4]), int(found[5]))  # noqa: DTZ001 - the log tells no zone
    except ValueError:
        return None
    start = datetime(2000, 1, 1) if clock == "yearless" else datetime(1970, 1, 1)  # noqa: DTZ001 - as above
    return Moment(clock=clock, at_s=(at - start).total_seconds())
