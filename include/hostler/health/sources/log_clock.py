"""The host's clock: chronyc, ntpq, ntpstat, timedatectl, ntpdate."""

import re
from collections.abc import Iterator
from typing import Final

from hostler.health.catalog import LIMITS
from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction
from hostler.model.health import Finding, SourceHealth

KIND: Final = "clock"
_SYSTEM: Final = re.compile(r"^System time\s{1,12}:\s{1,4}(\d{1,12}\.\d{1,12}) seconds (slow|fast) of NTP time", re.MULTILINE)
_LEAP: Final = re.compile(r"^Leap status\s{1,12}:\s{1,4}([^\n]{1,40})", re.MULTILINE)
_SOURCES: Final = re.compile(r"^([\^=#])([*+?x~ -]) (\S{1,80})\s{1,60}\d", re.MULTILINE)
_NTPQ_HEAD: Final = re.compile(r"^\s{0,12}remote\s{1,20}refid\s{1,20}st", re.MULTILINE)
_NTPQ: Final = re.compile(
    (
        r"^([*+#ox. -])(\S{1,80})\s{1,40}\S{1,40}\s{1,12}\d{1,3}\s{1,12}\S\s{1,12}\S{1,12}\s{1,12}\d{1,6}"
        r"\s{1,12}\d{1,4}\s{1,12}[\d.]{1,14}\s{1,12}([+-]?[\d.]{1,16})\s{1,12}"
    ),
    re.MULTILINE,
)
_SYNCED: Final = re.compile(r"(?:System clock|NTP) synchronized:\s{1,4}(yes|no)")
_SERVICE: Final = re.compile(r"(?:NTP service|systemd-timesyncd\.service active|Network time on):\s{1,4}(\w{2,12})")
_NTPSTAT: Final = re.compile(r"^(synchronised to|unsynchronised)", re.MULTILINE)
_WITHIN: Final = re.compile(r"time correct to within (\d{1,9}) ms")
_OFFSET: Final = re.compile(
    r"\boffset ([+-]?\d{1,12}\.\d{1,12}) ?(?:sec|s\b)|\bOffset: ([+-]?\d{1,12}(?:\.\d{1,9})?)(us|ms|s)\b"
)
_DOWN: Final = re.compile(
    r"506 Cannot talk to daemon|Connection refused|Could not open socket|Failed to (?:query|connect)[^\n]{0,80}", re.IGNORECASE
)
_SOURCE: Final = "chrony and ntp manuals; limits ours"


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.9 for a tool's own form, 0.6 for words of time keeping."""
    if _SYSTEM.search(text) or _LEAP.search(text) or _NTPQ_HEAD.search(text) or _SYNCED.search(text) or _NTPSTAT.search(text):
        return 0.9
    if re.search(r"MS Name/IP address\s+Stratum|506 Cannot talk to daemon|ntpdate\[\d+\]", text):
        return 0.8
    return 0.6 if _OFFSET.search(text) and re.search(r"ntp|chrony|stratum|time server", text, re.IGNORECASE) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges how far the clock is off and whether anything keeps it."""
    findings = list(_read(text))
    if not findings:
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    return source_health(KIND, findings=findings)


def _read(text: str) -> Iterator[Finding]:
    down = _DOWN.search(text)
    if down:
        yield degraded(
            "clock.no_service",
            f"the time service does not answer: {cut(down[0])}",
            cut(down[0]),
            _SOURCE,
            HealthAction.RESTART_SERVICE,
        )
    yield from _tracking(text)
    sources = _SOURCES.findall(text)
    if sources:
        yield from _not_synced(not any(state == "*" for _, state, _ in sources), f"{len(sources)} sources")
    if _NTPQ_HEAD.search(text):
        yield from _peers(text)
    if found := _SYNCED.search(text):
        yield from _not_synced(found[1] == "no", cut(found[0]))
    if found := _NTPSTAT.search(text):
        yield from _not_synced(found[1] == "unsynchronised", cut(found[0]))
    if found := _WITHIN.search(text):
        yield _skew(int(found[1]) / 1000, cut(found[0]))
    if found := _OFFSET.search(text):
        number = found[1] or found[2]
        scale = {"us": 1e-6, "ms": 1e-3}.get(found[3] or "s", 1.0)
        yield _skew(abs(float(number)) * scale, cut(found[0]))


def _tracking(text: str) -> Iterator[Finding]:
    skew, leap = _SYSTEM.search(text), _LEAP.search(text)
    is_tracking = leap is not None or re.search(r"^Reference ID\s{1,12}:", text, re.MULTILINE) is not None
    if is_tracking != (skew is not None):
        yield unknown("clock.skew", "the report of chronyd is not whole")
    if skew:
        yield _skew(float(skew[1]), cut(skew[0]))
    if leap:
        yield from _not_synced(leap[1].strip().lower() == "not synchronised", cut(leap[0]))


def _peers(text: str) -> Iterator[Finding]:
    peers = _NTPQ.findall(text)
    chosen = [(name, offset) for mark, name, offset in peers if mark in {"*", "o"}]
    yield from _not_synced(not chosen, f"{len(peers)} peers, none chosen" if not chosen else f"peer {chosen[0][0]}")
    for name, offset in chosen[:1]:
        try:
            yield _skew(abs(float(offset)) / 1000, f"offset {offset} ms to {name}")
        except ValueError:
            yield unknown("clock.skew", f"the offset {offset!r} is no number")


def _skew(skew_s: float, said: str) -> Finding:
    watched, critical = LIMITS["clock_skew_s"], LIMITS["clock_skew_critical_s"]
    what = f"the clock is {skew_s:g} s off"
    if critical.is_broken_by(skew_s):
        return failed("clock.skew", f"{what}, limit {critical.value:g} s", HealthAction.RESTART_SERVICE, said, critical.source)
    if watched.is_broken_by(skew_s):
        return degraded("clock.skew", f"{what}, limit {watched.value:g} s", said, watched.source, HealthAction.RESTART_SERVICE)
    return noted("clock.skew", what, said, watched.source)


def _not_synced(is_loose: bool, said: str) -> Iterator[Finding]:
    if is_loose:
        limit = LIMITS["clock_unsynchronised_s"]
        yield degraded(
            "clock.unsynchronised", f"the clock follows no source ({said})", said, limit.source, HealthAction.RESTART_SERVICE
        )
    else:
        yield noted("clock.synchronised", f"the clock follows a source ({said})", said, _SOURCE)


CLOCK: Final = Source(
    kind=KIND, detect=detect, parse=parse, command=r"\bchronyc\b|\bntpq\b|\bntpstat\b|timedatectl|\bntpdate\b|\bsntp\b"
)
