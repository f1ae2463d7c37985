"""Short outputs of nvidia-smi: ``nvlink -s``, ``-L``, ``topo -m``, ``dmon``, ``pmon``, ``--version``."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from hostler.health.catalog import accelerator_facts
from hostler.health.checks import judge_reading
from hostler.health.finding import degraded, noted, unknown
from hostler.health.reading import AcceleratorReading
from hostler.health.roll_up import accelerator_health, source_health, unlisted
from hostler.health.sources.gpu_fields import number_of, whole
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.health.words import device_finding, lost_devices, node_finding
from hostler.model.accelerators import ACCELERATORS
from hostler.model.enums import Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

_GPU_LINE: Final = re.compile(r"^\s*GPU (\d{1,4}):\s*(.*?)\s*(?:\(UUID:\s*([^)]*)\))?\s*$")
_MIG_LINE: Final = re.compile(r"^\s+MIG\s+(\S+)\s+Device\s+(\d+):")
_LINK: Final = re.compile(r"^\s*Link (\d{1,4}):\s*(.*?)\s*$")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_ON_BOARD: Final = re.compile(r"SXM|HBM3|\bH200|\bB[23]00|\bGB[23]00|\bGH200", re.IGNORECASE)
_NVLINK_SOURCE: Final = "NVIDIA/DCGM, DCGM_FR_NVLINK_DOWN"


@dataclass(slots=True, kw_only=True)
class _Block:
    """What stands under one ``GPU n:`` line."""

    index: int
    name: str
    uuid: str | None
    lines: list[str]


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    for line in text.splitlines():
        title = _GPU_LINE.match(line)
        if title:
            blocks.append(_Block(index=int(title[1]), name=title[2], uuid=title[3], lines=[]))
        elif blocks and line.strip():
            blocks[-1].lines.append(line)
    return blocks


def _around(kind: str, text: str, listed: list[AcceleratorHealth], command: str | None, exit_code: int | None) -> SourceHealth:
    """Returns the answer for the listed GPUs and the error texts around them."""
    lost = [accelerator_health(index=one.index, pci=one.pci, findings=(one.finding,)) for one in lost_devices(text)]
    known = node_finding(text, exit_code)
    if not listed and not lost:
        return source_health(kind, findings=[known or no_answer(text, command, exit_code)])
    findings = [*([known] if known and not lost else []), *_gaps([*listed, *lost])]
    unread = [f"accelerator {one.index}: {f.what}" for one in listed for f in one.findings if f.verdict is Verdict.UNKNOWN]
    return source_health(kind, [*listed, *lost], findings=findings, unknown=unread)


def _gaps(accelerators: list[AcceleratorHealth]) -> Iterator[Finding]:
    gaps = unlisted(accelerators)
    if gaps:
        yield unknown("reading.gpus", f"GPU {gaps} is not listed: nothing is known of it")


def parse_nvlink(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges ``nvidia-smi nvlink --status``: every link that a GPU has must be active; in MIG mode none applies."""
    listed = [
        accelerator_health(index=block.index, uuid=block.uuid, findings=tuple(_links(block))) for block in _blocks(text)
    ]  # fmt: skip
    return _around("nvidia-smi-nvlink", text, listed, command, exit_code)


def _links(block: _Block) -> Iterator[Finding]:
    text = " ".join(line.strip() for line in block.lines)
    links = [(int(found[1]), found[2]) for found in map(_LINK.match, block.lines) if found]
    if links:
        yield from _states(block, links)
    elif re.search(r"not supported.*\bMIG\b", text, re.IGNORECASE):
        yield noted("nvlink.not_applicable", "MIG is on: NVLink does not apply", text, "NVIDIA MIG user guide")
    elif re.search(r"does not have or support nvlink", text, re.IGNORECASE):
        yield noted("nvlink.none", "the GPU has no NVLink", text, "nvidia-smi manual, nvlink")
    elif re.search(r"all links are inactive", text, re.IGNORECASE):
        reading = AcceleratorReading(name=block.name, nvlink_active_count=0, nvlink_count=1)
        if _ON_BOARD.search(block.name):
            yield from judge_reading(reading)
        else:
            yield degraded("nvlink.inactive", "all NVLinks are inactive: is there a bridge?", text, _NVLINK_SOURCE)
    else:
        error = device_finding(text) if text else None
        yield error or unknown("reading.nvlink", f"the state of its links is not told: {text or 'nothing is printed'}")


def _states(block: _Block, links: list[tuple[int, str]]) -> Iterator[Finding]:
    states = [(link, _is_active(state)) for link, state in links]
    odd = [
        f"link {link}: {state or 'no state'}"
        for (link, state), (_, is_active) in zip(links, states, strict=True)
        if is_active is None
    ]
    active, total = sum(1 for _, is_active in states if is_active), len(states)
    if active + len(odd) < total:
        down = [str(link) for link, is_active in states if is_active is False]
        reading = AcceleratorReading(name=block.name, nvlink_active_count=active, nvlink_count=total)
        for finding in judge_reading(reading):
            yield Finding(
                code=finding.code, what=finding.what, verdict=finding.verdict, action=finding.action,
                evidence=f"inactive: link {', '.join(down)}", source=finding.source,
            )  # fmt: skip
    if odd:
        yield unknown("reading.nvlink", "; ".join(odd))
    if total < _model_links(block.name):
        yield unknown("reading.nvlink", f"{total} links are listed, {_model_links(block.name)} expected of a {block.name}")
    elif sorted(link for link, _ in links) != list(range(total)):
        yield unknown("reading.nvlink", f"links are missing from the list: {', '.join(str(link) for link, _ in links)}")


def _is_active(state: str) -> bool | None:
    if "inactive" in state.lower() or state.lower() in {"down", "off", "disabled"}:
        return False
    number = number_of(state) if state.endswith("B/s") else None  # a line that is cut tells nothing
    return None if number is None else number > 0


def _model_links(name: str) -> int:
    """Returns how many links a model of this name has; 0 when no table knows it."""
    short = next((short for short, names in ACCELERATORS.items() if name.lower() in names), None)
    facts = accelerator_facts(short) if short else None
    return facts.nvlink_count if facts else 0


def parse_list(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Lists the GPUs of ``nvidia-smi -L``: that they are there says nothing of how they are."""
    listed = []
    for block in _blocks(text):
        migs = sum(1 for line in block.lines if _MIG_LINE.match(line))
        findings = [unknown("reading.health", "it is listed; nothing is told of its health", block.name)]
        if migs:
            findings.append(noted("mig.on", f"MIG is on, {migs} instances", f"{migs} MIG devices", "NVIDIA MIG user guide"))
        error = device_finding(block.name) or device_finding(" ".join(block.lines))
        listed.append(accelerator_health(index=block.index, uuid=block.uuid, findings=([error] if error else findings)))
    return _around("nvidia-smi-list", text, listed, command, exit_code)


def parse_topology(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Lists the GPUs of ``nvidia-smi topo -m``: how they are joined says nothing of how they are."""
    plain = _COLOUR.sub("", text)
    rows = [
        match
        for match in re.finditer(r"^\s*GPU(\d{1,4})\s+(.*)$", plain, re.MULTILINE)
        if re.search(r"(^|\s)X(\s|$)", match[2])
    ]
    listed = [
        accelerator_health(
            index=int(row[1]),
            findings=(unknown("reading.health", "its place is told; nothing is told of its health", row[0].strip()),),
        )
        for row in rows
    ]
    return _around("nvidia-smi-topology", text, listed, command, exit_code)


def parse_dmon(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges heat in the samples of ``nvidia-smi dmon``; each GPU by its hottest."""
    heads = [line.lstrip("# ").split() for line in text.splitlines() if line.startswith("#") and "Idx" not in line]
    columns = heads[0] if heads else []
    samples: dict[int, list[dict[str, str]]] = {}
    for line in text.splitlines():
        cells = line.split()
        index = whole(cells[0]) if cells else None
        if index is None:
            continue
        samples.setdefault(index, []).append(dict(zip(columns, cells, strict=False)) if len(cells) == len(columns) else {})
    listed = [accelerator_health(index=index, findings=tuple(_hottest(rows))) for index, rows in sorted(samples.items())]
    return _around("nvidia-smi-dmon", text, listed, command, exit_code)


def _hottest(rows: list[dict[str, str]]) -> Iterator[Finding]:
    if any(not row for row in rows):
        yield unknown("reading.row", "a line does not fit the heading")
    heats = [number_of(row["gtemp"]) for row in rows if "gtemp" in row]
    known = [heat for heat in heats if heat is not None]
    if len(known) < len(heats) or not heats:
        yield unknown("reading.temperature_c", "temperature_c could not be read in every sample")
    if known:
        yield from judge_reading(AcceleratorReading(temperature_c=max(known)))


def parse_pmon(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Lists the GPUs of ``nvidia-smi pmon``: what runs on them says nothing of how they are."""
    indexes = sorted({index for line in text.splitlines() if (index := whole(line.strip().split(" ", 1)[0])) is not None})
    finding = unknown("reading.health", "its processes are told; nothing is told of its health")
    return _around(
        "nvidia-smi-pmon", text, [accelerator_health(index=index, findings=(finding,)) for index in indexes], command, exit_code
    )


def parse_version(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Compares the versions of tool and driver, in full: the same major and minor number is no match yet."""
    told = {
        found[1].lower(): found[2]
        for found in re.finditer(r"^(NVIDIA-SMI|NVML|DRIVER|KMD) version\s*:\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    }
    tool, driver = told.get("nvidia-smi"), told.get("driver") or told.get("kmd")
    if tool and driver and tool != driver and re.match(r"\d", driver):
        what = f"driver {driver}, tool and library {tool}: drain, then reboot"
        return source_health(
            "nvidia-smi-version",
            findings=[degraded("driver.mixed_versions", what, what, "tinygrad/open-gpu-kernel-modules#47")],
        )
    known = node_finding(text, exit_code)
    if known or not driver:
        return source_health("nvidia-smi-version", findings=[known or no_answer(text, command, exit_code)])
    return source_health("nvidia-smi-version", unknown=("versions alone say nothing of the GPUs",))


def _by(keys: tuple[str, ...], pattern: str, score: float) -> Callable[[str, str], float]:
    """Returns a detector; one of ``keys`` stands in every text that the pattern fits."""
    compiled = re.compile(pattern, re.MULTILINE | re.IGNORECASE)

    def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
        return score if any(key in text for key in keys) and compiled.search(text) else 0.0

    return detect


_NVLINK_TEXT: Final = (
    r"^[ \t]*Link \d+:\s*(<?inactive|[\d.]+ GB/s)|nvlink queries are not supported"
    r"|not have or support nvlink|links are inactive"
)

LISTS: Final = tuple(
    Source(kind=f"nvidia-smi-{word}", parse=parse, command=rf"nvidia-smi\s+{command}", detect=_by(keys, pattern, score))
    for word, parse, command, keys, pattern, score in (
        ("nvlink", parse_nvlink, "nvlink", ("Link ", "vlink", "VLink"), _NVLINK_TEXT, 0.95),
        # Only at the beginning: other tools print the same lines after words of their own.
        ("list", parse_list, "(-L|--list-gpus)", ("UUID",), r"\A\s*GPU \d+: .*\(UUID: ", 0.8),
        ("topology", parse_topology, "topo", ("GPU0",), r"^(\x1b\[[0-9;]*m)?GPU0\s+(X|\S+\s+X)\s", 0.9),
        ("dmon", parse_dmon, "dmon", ("gpu",), r"^# ?gpu\s+pwr", 0.95),
        ("pmon", parse_pmon, "pmon", ("gpu",), r"^# ?gpu\s+pid", 0.95),
        ("version", parse_version, "--version", ("version",), r"^NVIDIA-SMI version\s*:", 0.9),
    )
)
"""In the order in which equal scores are decided."""
