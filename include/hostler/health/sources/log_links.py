"""NVLink counters and states: ``nvidia-smi nvlink -e``, ``dcgmi nvlink -e`` and ``dcgmi nvlink --link-status``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hostler.health.catalog import LIMITS
from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import accelerator_health, cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.json_text import load
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

ERRORS_KIND: Final = "nvlink-errors"
STATUS_KIND: Final = "dcgmi-nvlink-status"
GCM: Final = "facebookresearch/gcm, check_nvlink: thresholds of 0"
_SMI_GPU: Final = re.compile(r"^\s{0,8}GPU (\d{1,3}): ?[^\n]{0,200}?(?:\(UUID: ?(GPU-[0-9a-fA-F-]{36})\))?\s*$")
_SMI_LINE: Final = re.compile(
    r"^\s{0,8}Link (\d{1,3}): {0,4}([A-Za-z][\w /()-]{2,60}?)(?::| -) {0,8}(\S{1,40})(?: \S{1,20})?\s*$"
)
_ROW_LINK: Final = re.compile(r"^\|\s{0,8}Link (\d{1,3})\s*\|")
_ROW_VALUE: Final = re.compile(r"^\|\s{0,8}->\s{0,8}([A-Za-z][\w ]{2,40}?)\s*\|\s{0,8}(\S{1,40})\s*\|\s*$")
_SERIOUS: Final = re.compile(r"replay|recovery (?:error|failed)|crc data|recovery failed", re.IGNORECASE)
_WATCHED: Final = re.compile(r"error|recovery", re.IGNORECASE)
_STATES: Final = re.compile(r"^\s{0,16}(?:[UDX_]\s{1,4}){0,80}[UDX_]\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    gpu: int
    link: int
    name: str
    text: str

    @property
    def value(self) -> int | None:
        return int(self.text) if self.text.isascii() and self.text.isdigit() else None


def detect_errors(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for error counters of links."""
    if re.search(r"NVLINK Error Counts|\"CRC (?:FLIT|Data) Error\"", text, re.IGNORECASE):
        return 0.95
    return 0.95 if re.search(r"^\s{0,8}Link \d{1,3}: {0,4}[A-Z][\w ]{2,50}Errors?: ", text, re.MULTILINE) else 0.0


def parse_errors(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges the counters since the driver was loaded: replay, recovery and data errors are a fault, others are watched."""
    document = load(text)
    uuids: dict[int, str] = {}
    counts = list(_of_json(document)) if isinstance(document, dict) else list(_of_text(text, uuids))
    if not counts:
        return source_health(ERRORS_KIND, findings=[no_answer(text, command, exit_code)])
    gpus: dict[int, list[Finding]] = {}
    for count in counts:
        gpus.setdefault(count.gpu, []).extend(_count(count))
    return source_health(
        ERRORS_KIND,
        [accelerator_health(index=gpu, uuid=uuids.get(gpu), findings=found) for gpu, found in sorted(gpus.items())],
    )


def _count(count: _Count) -> Iterator[Finding]:
    what, value = f"link {count.link}: {count.name}: {count.text}", count.value
    code = "nvlink." + re.sub(r"[^a-z0-9]+", "_", count.name.lower()).strip("_")
    if not _WATCHED.search(count.name) or re.search(r"\bBER\b|\bFEC\b|successful|Total link", count.name):
        return
    if value is None:
        if not re.search(r"n/?a|not supported", count.text, re.IGNORECASE):
            yield unknown(code, f"{what} is no number")
    elif value > 0 and _SERIOUS.search(count.name):
        source = GCM if "crc" in code else LIMITS["nvlink_recovery_count"].source
        yield failed(code, f"{what}, limit 0: test the link", HealthAction.DRAIN_AND_DIAG, what, source)
    elif value > 0:
        yield degraded(code, f"{what}: watch its rate", what, LIMITS["nvlink_crc_per_s"].source)


def _of_json(document: dict[str, Any]) -> Iterator[_Count]:
    header = document.get("header")
    named = re.search(r"GPU (\d{1,3})", " ".join(map(str, header)) if isinstance(header, list) else "")
    body = document.get("body")
    for link, node in body.items() if isinstance(body, dict) else ():
        number = re.fullmatch(r"Link (\d{1,3})", str(link))
        children = node.get("children") if isinstance(node, dict) else None
        if number is None or not isinstance(children, dict):
            continue
        for name, leaf in children.items():
            value = leaf.get("value") if isinstance(leaf, dict) else leaf
            yield _Count(gpu=int(named[1]) if named else 0, link=int(number[1]), name=str(name), text=str(value))


def _of_text(text: str, uuids: dict[int, str]) -> Iterator[_Count]:
    gpu, link = 0, 0
    for line in text.splitlines():
        found = _SMI_GPU.match(line) or re.match(r"^\|\s{0,8}GPU (\d{1,3})()\s*\|\s*$", line)
        if found:
            gpu = int(found[1])
            if found[2]:
                uuids[gpu] = found[2]
        elif one := _SMI_LINE.match(line):
            yield _Count(gpu=gpu, link=int(one[1]), name=one[2], text=one[3])
        elif of_link := _ROW_LINK.match(line):
            link = int(of_link[1])
        elif row := _ROW_VALUE.match(line):
            yield _Count(gpu=gpu, link=link, name=row[1], text=row[2])
        elif re.search(r"\bErrors?\b|\bLink\b", line) and not re.search(r"NVLINK Error Counts", line, re.IGNORECASE):
            yield _Count(gpu=gpu, link=link, name="error line", text="cannot be read: " + line.strip()[:80])


def detect_status(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for the table of link states."""
    return 0.95 if re.search(r"NvLink Link Status|Key: Up=U, Down=D", text, re.IGNORECASE) else 0.0


def parse_status(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges the letters: U up, D down, X disabled, _ not supported."""
    accelerators: list[AcceleratorHealth] = []
    switches: list[Finding] = []
    gpu = switch = None
    for line in text.splitlines():
        if found := re.search(r"gpuId\s{0,4}:?\s{0,4}(\d{1,3})", line, re.IGNORECASE):
            gpu, switch = int(found[1]), None
        elif found := re.search(r"(?:physicalId|switchId|nvswitch)\s{0,4}:?\s{0,4}(\d{1,6})", line, re.IGNORECASE):
            gpu, switch = None, found[1]
        elif _STATES.match(line) and (gpu is not None or switch is not None):
            states = line.split()
            found_here = list(_states(states, f"switch {switch}: " if switch else ""))
            if gpu is not None:
                accelerators.append(accelerator_health(index=gpu, findings=found_here))
            else:
                switches += [one for one in found_here if one.verdict is not Verdict.HEALTHY]
    if not accelerators and not switches:
        return source_health(STATUS_KIND, findings=[no_answer(text, command, exit_code)])
    return source_health(STATUS_KIND, accelerators, findings=switches)


def _states(states: list[str], where: str) -> Iterator[Finding]:
    text = cut(where + " ".join(states))
    down, disabled = states.count("D"), states.count("X")
    if down:
        yield failed(
            "nvlink.down",
            f"{where}{down} of {len(states)} NVLinks are down: no jobs over several GPUs; check the fabric manager first",
            HealthAction.RESTART_SERVICE if down == len(states) else HealthAction.DRAIN_AND_DIAG,
            text,
            "NVIDIA/DCGM DCGM_FR_NVLINK_DOWN; NVIDIA/DCGM#198",
        )
    elif disabled:
        yield degraded(
            "nvlink.disabled", f"{where}{disabled} of {len(states)} NVLinks are disabled", text, "dcgmi nvlink manual"
        )
    elif set(states) == {"_"}:
        yield noted("nvlink.not_applicable", f"{where}no NVLink", text, "dcgmi nvlink manual")


LINK_SOURCES: Final = (
    Source(kind=ERRORS_KIND, detect=detect_errors, parse=parse_errors, command=r"nvlink\b.*(?:\s-e\b|--error)"),
    Source(kind=STATUS_KIND, detect=detect_status, parse=parse_status, command=r"\bdcgmi\b.*nvlink\b.*(?:-s\b|--link-status)"),
)
