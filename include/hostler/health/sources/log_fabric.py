"""Log of NVIDIA's fabric manager: errors of NVSwitch, of link training, of the service itself."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hostler.health.catalog import sxid
from hostler.health.finding import degraded, failed, unknown
from hostler.health.pci import normal_pci
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.log_words import LogWord
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "fabric-manager-log"
GUIDE: Final = "NVIDIA Fabric Manager user guide DU-09883-001"
_LINE: Final = re.compile(
    r"^\s{0,8}\[[^\]\n]{10,40}\]\s{1,4}\[([A-Z]{3,10})\]\s{1,4}(?:\[tid \d{1,10}\]\s{1,4})?(?!\[[\w.]{2,60}:\d)(.*)$",
    re.MULTILINE,
)
_SWITCH: Final = re.compile(
    r"detected NVSwitch (?P<fatal>non-fatal|fatal) error (?P<code>\d{1,6})(?P<where>.{0,300})"
    r"|NVSwitch.{0,60}\bSXid\D{0,40}(?P<sxid>\d{4,6})",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(r"pci bus id (\S{7,20})(?: physical id (\d{1,6}))?(?: port (\d{1,4}))?", re.IGNORECASE)

_WORDS: Final = (
    LogWord(
        code="fabric.not_applicable",
        patterns=(r"NV_WARN_NOTHING_TO_DO", r"no NVSwitch", r"not an? NVSwitch based"),
        verdict=Verdict.HEALTHY,
        action=HealthAction.NONE,
        what="there is no NVSwitch: the fabric manager has nothing to do",
    ),
    LogWord(
        code="fabric.version_mismatch",
        patterns=(
            r"version (?:mismatch|is not compatible)",
            r"(?:does not|doesn't) match .{0,60}version",
            r"version .{0,80}(?:does not|doesn't) match",
        ),
        verdict=Verdict.FAILED,
        action=HealthAction.RESTART_SERVICE,
        what="fabric manager and driver are of different versions",
    ),
    LogWord(
        code="fabric.training_failed",
        patterns=(r"link.{0,60}training.{0,40}fail", r"fail\w{0,3} .{0,60}link training", r"failed to train"),
        verdict=Verdict.FAILED,
        action=HealthAction.RESTART_SERVICE,
        what="links could not be trained: restart the fabric manager, then reboot",
    ),
    LogWord(
        code="fabric.degraded",
        patterns=(r"degraded mode", r"running in degraded", r"marked as degraded", r"is degraded"),
        verdict=Verdict.FAILED,
        action=HealthAction.DRAIN_AND_DIAG,
        what="the fabric runs with less than it has",
    ),
    LogWord(
        code="fabric.fatal",
        patterns=(r"detected .{0,80}(?<!non-)fatal error", r"(?<!non-)fatal error .{0,80}detected"),
        verdict=Verdict.FAILED,
        action=HealthAction.DRAIN_AND_DIAG,
        what="a fatal error in the fabric",
    ),
    LogWord(
        code="fabric.link_down",
        patterns=(r"(?:access|trunk) link.{0,80}(?:down|failed|inactive)", r"link .{0,60}went down"),
        verdict=Verdict.FAILED,
        action=HealthAction.DRAIN_AND_DIAG,
        what="a link of the fabric is down",
    ),
    LogWord(
        code="fabric.not_started",
        patterns=(
            r"failed to (?:initialize|start|configure|enable|detect|discover|open|register)",
            r"initialization (?:failed|error)",
            r"exiting with error",
            r"system is not (?:ready|initialized)",
        ),
        verdict=Verdict.FAILED,
        action=HealthAction.RESTART_SERVICE,
        what="the fabric manager could not bring up the fabric",
    ),
)


def detect(text: str, name: str) -> float:
    """Returns 0.9 for its lines with words of the fabric, 0.3 for such lines alone or by the file's name."""
    is_form = bool(_LINE.search(text))
    if is_form and re.search(r"fabric ?manager|nvswitch|nvlink|multicast|inband", text, re.IGNORECASE):
        return 0.9
    return 0.3 if is_form or re.search(r"fabric.?manager", name, re.IGNORECASE) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:  # noqa: ARG001 - a log says it all itself
    """Judges every line; a log without one of its lines is unknown."""
    lines = _LINE.findall(text)
    if not lines:
        return source_health(KIND, unknown=("no line of a fabric manager's log in it",))
    findings: dict[tuple[str, HealthAction], Finding] = {}
    odd = next((line for line in text.splitlines() if line.startswith("[") and not _LINE.match(line)), None)
    if odd is not None:
        findings["line", HealthAction.RECORD] = unknown("fabric.line", f"a line could not be read: {cut(odd)}")
    for level, message in lines:
        for found in _read(level, message):
            findings.setdefault((found.code, found.action), found)
    return source_health(KIND, findings=list(findings.values()), silent=Verdict.HEALTHY)


def _read(level: str, message: str) -> Iterator[Finding]:
    found = _SWITCH.search(message)
    if found:
        yield _switch(message, found)
        return
    if level in {"INFO", "DEBUG"}:
        return
    for word in _WORDS:
        if word.search(message):
            yield replace(word.finding(message, GUIDE), what=f"{word.what}: {cut(message)}")
            return
    if level in {"CRITICAL", "FATAL"}:
        yield failed(
            "fabric.critical", f"the fabric manager says: {cut(message)}", HealthAction.RESTART_SERVICE, cut(message), GUIDE
        )
    else:
        yield degraded(f"fabric.{level.lower()}", f"the fabric manager says: {cut(message)}", cut(message), GUIDE)


def _switch(message: str, found: "re.Match[str]") -> Finding:
    code = int(found["code"] or found["sxid"])
    rule = sxid(code, message)
    place = _PLACE.search(message)
    where = "NVSwitch"
    if place:
        where += f" {normal_pci(place[1]) or place[1]}"
        where += f" (physical id {place[2]})" if place[2] else ""
        where += f" port {place[3]}" if place[3] else ""
    return Finding(
        code=f"sxid.{code}",
        what=f"{where}: SXid {code}: {rule.words}",
        verdict=rule.verdict,
        action=rule.action,
        evidence=cut(message),
        source=rule.source,
    )


FABRIC: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"fabric.?manager")
