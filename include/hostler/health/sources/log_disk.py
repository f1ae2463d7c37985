"""The host's disks: ``df``, ``df -i`` and the list of mounts."""

import re
from collections.abc import Iterator
from typing import Final

from hostler.health.catalog import LIMITS
from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

DF_KIND: Final = "df"
MOUNTS_KIND: Final = "mounts"
FULL_RATIO: Final = 0.99
_DF_HEAD: Final = re.compile(r"^Filesystem\s{1,40}.{0,80}\b(Use%|IUse%|Capacity|%iused)", re.MULTILINE)
_USED: Final = re.compile(
    r"^(?P<fs>\S{1,300})?\s{1,60}(?:\S{1,20}\s{1,40}){3,5}?(?P<used>\d{1,3}|-)%?\s{1,20}(?P<at>/[^\n]{0,300})$"
)
_DF_ERROR: Final = re.compile(
    (
        r"^df: ([^\n]{1,200}?): (Transport endpoint is not connected|Stale file handle|Input/output error"
        r"|No such device|Host is down|Permission denied)"
    ),
    re.MULTILINE,
)
_FIXED_FULL: Final = re.compile(
    r"^(?:/dev/loop\d|squashfs|iso9660|/dev/sr\d|efivarfs|devfs|snapfuse)|^/snap/|^/sys/|^/var/lib/snapd/"
)
_MOUNT: Final = re.compile(
    r"^(?P<dev>\S{1,300}) on (?P<at>/[^\n]{0,300}?) type (?P<type>[\w.-]{1,30}) \((?P<opts>[^)\n]{1,2000})\)", re.MULTILINE
)
_PROC: Final = re.compile(
    r"^(?P<dev>\S{1,300}) (?P<at>/\S{0,300}) (?P<type>[\w.-]{1,30}) (?P<opts>(?:rw|ro)[\w,=:./@+-]{0,2000}) \d \d\s*$",
    re.MULTILINE,
)
_FINDMNT: Final = re.compile(
    (
        r"^[|`├└─│ -]{0,12}(?P<at>/\S{0,300})\s{1,200}(?P<dev>\S{1,300})\s{1,200}(?P<type>[\w.-]{1,30})"
        r"\s{1,60}(?P<opts>(?:rw|ro)\b\S{0,2000})\s*$"
    ),
    re.MULTILINE,
)
_REAL_TYPES: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "nfs", "nfs4", "lustre", "ceph", "beegfs", "gpfs", "overlay"}
)
_BOOT: Final = re.compile(r"^/boot|^/usr$|^/snap/|^/var/lib/(?:docker|containerd|kubelet)")
_SOURCE: Final = "facebookresearch/gcm and Azure/azurehpc-health-checks, disk checks"


def detect_df(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for the table's head, 0.6 for an error of df."""
    return 0.95 if _DF_HEAD.search(text) else 0.6 if _DF_ERROR.search(text) else 0.0


def parse_df(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges the use of each file system that can grow, blocks or inodes."""
    head = _DF_HEAD.search(text)
    of_inodes = bool(head and "i" in head[1].lower().replace("capacity", ""))
    findings = [_broken(found) for found in _DF_ERROR.finditer(text)]
    body = text[head.end() :].partition("\n")[2] if head else ""
    rows = list(_rows(body))
    findings += [unknown("disk.line", f"a line could not be read: {cut(line)}") for line in _odd_lines(body)]
    if not rows and not findings:
        return source_health(DF_KIND, findings=[no_answer(text, command, exit_code)])
    findings += [found for filesystem, at, used in rows for found in _use(filesystem, at, used, of_inodes=of_inodes)]
    return source_health(DF_KIND, findings=findings, silent=Verdict.HEALTHY)


def _rows(text: str) -> Iterator[tuple[str, str, int]]:
    name = ""
    for line in text.splitlines():
        found = _USED.match(line)
        if found is None:
            # An old df breaks a line after a long name.
            name = line.strip() if re.fullmatch(r"\S{1,300}", line.strip()) else ""
            continue
        if found["used"] != "-":
            yield found["fs"] or name, found["at"].strip(), int(found["used"])
        name = ""


def _odd_lines(text: str) -> list[str]:
    """Returns lines that are no row, no error of df and no first half of a row."""
    odd = []
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("df: ")]
    for at, line in enumerate(lines):
        is_half = len(line.split()) == 1 and at + 1 < len(lines) and lines[at + 1][:1].isspace()
        if not _USED.match(line) and not is_half:
            odd.append(line)
    return odd[:3]


def _use(filesystem: str, at: str, used_percent: int, *, of_inodes: bool) -> Iterator[Finding]:
    if _FIXED_FULL.search(filesystem) or _FIXED_FULL.search(at):
        return
    what = "inodes" if of_inodes else "space"
    said = f"{at} ({filesystem}): {used_percent} % of its {what} used"
    code, used = f"disk.{what}", used_percent / 100
    critical, watched = LIMITS["disk_used_critical_ratio"], LIMITS["disk_used_ratio"]
    if used >= FULL_RATIO:
        yield failed(code, f"{said}: full", HealthAction.DRAIN_AND_DIAG, said, critical.source)
    elif critical.is_broken_by(used):
        yield failed(code, f"{said}, limit {critical.value:.0%}: make room", HealthAction.RECORD, said, critical.source)
    elif watched.is_broken_by(used):
        yield degraded(code, f"{said}, limit {watched.value:.0%}", said, watched.source)


def _broken(found: "re.Match[str]") -> Finding:
    said = cut(found[0])
    if found[2] == "Permission denied":
        return noted("disk.not_allowed", f"{found[1]}: not readable by this user", said, "df")
    if found[2] == "Input/output error":
        return failed("disk.error", f"{found[1]}: {found[2]}", HealthAction.DRAIN_AND_DIAG, said, _SOURCE)
    return failed("disk.mount_lost", f"{found[1]}: {found[2]}: mount it again", HealthAction.RESTART_SERVICE, said, _SOURCE)


def detect_mounts(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.9 for several mounts in one of their forms."""
    return 0.9 if any(sum(1 for _ in form.finditer(text)) > 1 for form in (_MOUNT, _PROC, _FINDMNT)) else 0.0


def parse_mounts(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges which file systems that should be written are read-only."""
    mounts = [found for form in (_MOUNT, _PROC, _FINDMNT) for found in form.finditer(text)]
    if not mounts:
        return source_health(MOUNTS_KIND, findings=[no_answer(text, command, exit_code)])
    findings = [finding for found in mounts for finding in _mount(found)]
    if not any(found["at"] == "/" for found in mounts):
        findings.append(unknown("disk.no_root", "the list has no root: it may be cut off"))
    return source_health(MOUNTS_KIND, findings=findings, silent=Verdict.HEALTHY)


def _mount(found: "re.Match[str]") -> Iterator[Finding]:
    options, at = found["opts"].split(","), found["at"]
    said = cut(found[0])
    if "emergency_ro" in options or "shutdown" in options:
        yield failed(
            "disk.read_only",
            f"{at}: the file system was shut down after errors",
            HealthAction.DRAIN_AND_DIAG,
            said,
            "Linux ext4, xfs",
        )
    elif "ro" in options and found["type"] in _REAL_TYPES and not _BOOT.search(at):
        if at == "/" or any(option.startswith("errors=remount-ro") for option in options):
            yield failed("disk.read_only", f"{at} is read-only", HealthAction.DRAIN_AND_DIAG, said, _SOURCE)
        else:
            yield degraded("disk.read_only", f"{at} is read-only: by intent, or after errors", said, _SOURCE)


DISK_SOURCES: Final = (
    Source(kind=DF_KIND, detect=detect_df, parse=parse_df, command=r"^\s*(\S*/)?df\b"),
    Source(kind=MOUNTS_KIND, detect=detect_mounts, parse=parse_mounts, command=r"\bmount\b|/proc/(self/)?mounts|findmnt"),
)
