"""What runs on the host: ``ps`` (tasks that hang in the kernel) and ``systemctl`` (services)."""

import re
from collections.abc import Iterator
from typing import Final

from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

PS_KIND: Final = "processes"
SERVICES_KIND: Final = "services"
MOST_ZOMBIES: Final = 5
_PS_HEAD: Final = re.compile(r"^[^\n]{0,200}\b(?:STAT|S)\b[^\n]{0,200}\b(?:COMMAND|CMD|COMM|WCHAN)\b[^\n]{0,80}$", re.MULTILINE)
_GPU_WORDS: Final = re.compile(r"nvidia|dcgm|python|torch|train|cuda|nv-hostengine|rocm|amd-smi", re.IGNORECASE)
NEEDED: Final = re.compile(
    r"nvidia-(?:fabricmanager|persistenced|dcgm|imex)|nv-hostengine|nv_peer_mem|\bdcgm\b|\bsshd?\b|docker|containerd|kubelet|slurmd|munge|chronyd?|ntpd?\b"
    r"|systemd-(?:timesyncd|networkd|resolved|journald)|NetworkManager|openibd|\bopensm\b|lustre|beegfs|nfs|gpsd|google-guest-agent|walinuxagent|amazon-ssm"
)
_UNIT: Final = re.compile(
    r"^\s{0,4}(?:[\u25cf\u00d7*]\s{0,4})?(?P<unit>[\w@:.\\-]{2,120}\.(?:service|mount|socket|timer|target|slice|device|swap|automount|path|scope))\s{1,120}"
    r"(?P<load>loaded|not-found|bad-setting|error|masked)\s{1,12}(?P<active>active|inactive|failed|activating|deactivating|reloading)\s{1,12}(?P<sub>[\w-]{2,20})",
    re.MULTILINE,
)
_NONE_FAILED: Final = re.compile(r"^0 loaded units listed", re.MULTILINE)
_STATUS: Final = re.compile(
    r"^[\u25cf\u00d7\u25cb*]?\s{0,4}(?P<unit>[\w@:.\\-]{2,120}\.\w{4,9}) ?(?:- [^\n]{0,200})?$", re.MULTILINE
)
_ACTIVE: Final = re.compile(
    r"^\s{1,8}Active: (active|inactive|failed|activating|deactivating|reloading)(?: \(([^)\n]{1,60})\))?", re.MULTILINE
)
_LOADED: Final = re.compile(r"^\s{1,8}Loaded: (not-found|bad-setting|error|masked)", re.MULTILINE)
_NOT_FOUND: Final = re.compile(r"Unit (\S{2,120}) could not be found")
_WORDS: Final = frozenset({"active", "inactive", "failed", "activating", "deactivating", "unknown", "not-found", "reloading"})
_BROKEN_BUS: Final = re.compile(r"Failed to connect to bus|System has not been booted with systemd", re.IGNORECASE)
_SOURCE: Final = "systemctl manual; facebookresearch/gcm and Soperator service checks"
_D_SOURCE: Final = "facebookresearch/gcm, leptonai/gpud: tasks in D or Z"


def detect_ps(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.85 for the head of a process list."""
    return 0.85 if _PS_HEAD.search(text) and re.search(r"\bPID\b", text) else 0.0


def parse_ps(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges the states of the tasks at one moment: only what hangs again and again asks for a reboot."""
    head = _PS_HEAD.search(text)
    if head is None:
        return source_health(PS_KIND, findings=[no_answer(text, command, exit_code)])
    columns = head[0].split()
    state_at = next(at for at, word in enumerate(columns) if word in {"STAT", "S"})
    pid_at = columns.index("PID") if "PID" in columns else None
    rows = [line.split(None, len(columns) - 1) for line in text[head.end() :].splitlines() if line.strip()]
    rows = [row for row in rows if len(row) > state_at and re.match(r"[RSDTZIXtW]", row[state_at])]
    findings = [found for row in rows if row[state_at].startswith("D") for found in _hanging(row, pid_at)]
    zombies = [row for row in rows if row[state_at].startswith("Z")]
    on_gpu = [row for row in zombies if _GPU_WORDS.search(row[-1])]
    if len(zombies) > MOST_ZOMBIES or on_gpu:
        shown = on_gpu or zombies
        findings.append(
            degraded(
                "process.zombie",
                f"{len(zombies)} tasks have ended and are not collected, such as {cut(shown[0][-1])}",
                cut(" ".join(shown[0])),
                _D_SOURCE,
            )
        )
    if not rows and not re.search(r"ps\b", command or ""):
        findings.append(unknown("process.none", "the list has no task: it may be cut off"))
    return source_health(PS_KIND, findings=findings, silent=Verdict.HEALTHY)


def _hanging(row: list[str], pid_at: int | None) -> Iterator[Finding]:
    command = row[-1]
    if command.startswith("["):
        return  # threads of the kernel wait so by design
    pid = row[pid_at] if pid_at is not None and pid_at < len(row) else "?"
    said = cut(" ".join(row))
    what = f"task {pid} ({cut(command)[:80]}) hangs in the kernel"
    if _GPU_WORDS.search(command):
        yield degraded(
            "process.hangs",
            f"{what}, on a GPU's driver or its data: reboot when it goes on",
            said,
            _D_SOURCE,
            HealthAction.RECORD,
        )
    else:
        yield degraded("process.hangs", f"{what}: watch", said, _D_SOURCE)


def detect_services(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.9 for a list or a status of units, 0.3 for bare words of ``is-active``."""
    if _NONE_FAILED.search(text) or _UNIT.search(text) or (_STATUS.search(text) and _ACTIVE.search(text)):
        return 0.9
    if _NOT_FOUND.search(text) or _BROKEN_BUS.search(text):
        return 0.8
    words = text.split()
    return 0.3 if words and len(words) < 50 and all(word in _WORDS for word in words) else 0.0  # noqa: PLR2004 - few services


def parse_services(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each unit: one that the work needs and that does not run is a fault, another is watched."""
    findings = [*_units(text), *_statuses(text), *_bare(text, command or "")]
    if broken := _BROKEN_BUS.search(text):
        findings.append(unknown("service.no_systemd", f"services cannot be asked: {broken[0]}"))
    if not findings and not _NONE_FAILED.search(text) and not _UNIT.search(text):
        return source_health(SERVICES_KIND, findings=[no_answer(text, command, exit_code)])
    return source_health(SERVICES_KIND, findings=findings, silent=Verdict.HEALTHY)


def _units(text: str) -> Iterator[Finding]:
    for found in _UNIT.finditer(text):
        if found["active"] == "failed" or found["load"] in {"error", "bad-setting"}:
            yield _not_running(found["unit"], f"{found['active']} ({found['sub']})", cut(found[0]))
        elif found["load"] == "not-found":
            continue
        elif found["active"] == "inactive" and NEEDED.search(found["unit"]) and found["unit"].endswith(".service"):
            yield noted("service.off", f"{found['unit']} is switched off", cut(found[0]), _SOURCE)


def _statuses(text: str) -> Iterator[Finding]:
    for name in _NOT_FOUND.findall(text):
        yield degraded("service.not_found", f"{name} is not installed", f"Unit {name} could not be found", _SOURCE)
    heads = list(_STATUS.finditer(text))
    for at, head in enumerate(heads):
        block = text[head.end() : heads[at + 1].start() if at + 1 < len(heads) else len(text)]
        active, loaded = _ACTIVE.search(block), _LOADED.search(block)
        if loaded and loaded[1] != "masked":
            yield degraded("service.not_found", f"{head['unit']}: {loaded[1]}", cut(loaded[0]), _SOURCE)
        elif active and active[1] in {"active", "reloading"}:
            yield noted("service.active", f"{head['unit']} is {active[1]} ({active[2]})", cut(active[0]), _SOURCE)
        elif active:
            yield _not_running(head["unit"], f"{active[1]} ({active[2] or 'no reason told'})", cut(active[0]))


def _bare(text: str, command: str) -> Iterator[Finding]:
    words = text.split()
    if not words or not all(word in _WORDS for word in words):
        return
    names = [
        word
        for word in command.split()
        if not word.startswith("-") and word not in {"systemctl", "is-active", "sudo", "is-failed"}
    ]
    for at, word in enumerate(words):
        name = names[at] if len(names) == len(words) else "the service"
        if word == "active":
            yield noted("service.active", f"{name} is active", word, _SOURCE)
        else:
            yield _not_running(name, word, f"{name}: {word}", is_named=len(names) == len(words))


def _not_running(name: str, state: str, said: str, *, is_named: bool = False) -> Finding:
    if state == "unknown":
        return unknown("service.unknown", f"{name}: its state is not known", said)
    what = f"{name}: {state}"
    if state.startswith(("activating", "deactivating")):
        return degraded("service.starting", what, said, _SOURCE)
    if NEEDED.search(name) or is_named or name == "the service":
        return failed("service.failed", f"{what}: restart it", HealthAction.RESTART_SERVICE, said, _SOURCE)
    return degraded("service.failed", what, said, _SOURCE)


PROCESS_SOURCES: Final = (
    Source(kind=PS_KIND, detect=detect_ps, parse=parse_ps, command=r"(^|[\s/])ps\s"),
    Source(kind=SERVICES_KIND, detect=detect_services, parse=parse_services, command=r"\bsystemctl\b"),
)
