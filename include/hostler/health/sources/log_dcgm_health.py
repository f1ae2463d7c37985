"""``dcgmi health --check``: JSON and tables of DCGM 1.7 to 4."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from hostler.health.finding import unknown
from hostler.health.roll_up import accelerator_health, source_health, worst
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.json_text import load
from hostler.health.sources.log_dcgm_words import VERDICTS, finding
from hostler.health.sources.source import Source
from hostler.model.enums import Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "dcgmi-health"
_SURE: Final = re.compile(r"Health Monitor Report|Overall Health|Health monitor systems report", re.IGNORECASE)
_OVERALL: Final = re.compile(r"(?:overall health|health monitor systems report)\W{1,80}(\w{2,20})", re.IGNORECASE)
_GPU: Final = re.compile(r"(?:->\s{0,4})?(?:GPUs?)(?: ?ID)?:?\s{0,4}(\d{1,3})|->\s{0,4}(\d{1,3})", re.IGNORECASE)
_TOLD: Final = re.compile(
    r"(?P<name>[A-Za-z][\w /-]{1,40}?)(?: system)?s?\s{0,4}[:|]\s{0,4}(?P<status>healthy|warning|failure)\b(?:\s*[-:]\s*(?P<text>.*))?",
    re.IGNORECASE,
)
_CELLS: Final = re.compile(r"^\|([^|\n]{0,400})\|([^|\n]{0,2000})\|\s*$")


@dataclass(slots=True)
class _Told:
    gpu: int | None
    name: str
    status: str
    texts: list[str] = field(default_factory=list)


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.9 for a health report."""
    return 0.9 if _SURE.search(text) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each watched system of each GPU; a report whose overall word is worse than its parts is as bad as that word."""
    document = load(text)
    told = list(_of_json(document)) if isinstance(document, dict) else list(_of_text(text))
    overall = _overall(document, text)
    if not told and overall is None:
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    gpus: dict[int, list[Finding]] = {one.gpu: [] for one in told if one.gpu is not None}
    findings: list[Finding] = []
    for one in told:
        if VERDICTS.get(one.status.lower()) is Verdict.HEALTHY:
            continue
        found = finding("dcgm.health." + _word(one.name), one.status, ": ".join([one.name, *one.texts]).strip(": ") or "health")
        if one.gpu is None:
            findings.append(found)
        else:
            gpus[one.gpu].append(found)
    findings += _of_overall(overall, [*findings, *(found for each in gpus.values() for found in each)])
    accelerators = [accelerator_health(index=gpu, findings=_last(found)) for gpu, found in sorted(gpus.items())]
    return source_health(KIND, accelerators, findings=findings, silent=Verdict.HEALTHY)


def _last(found: list[Finding]) -> list[Finding]:
    """A GPU's own word without a reason says nothing more when a system of it was named."""
    named = [one for one in found if one.code != "dcgm.health.gpu"]
    return list(dict.fromkeys(named or found))


def _of_overall(overall: str | None, found: list[Finding]) -> list[Finding]:
    if overall is None:
        return [unknown("dcgm.health.overall", "the report has no overall health: it may be cut off")]
    verdict = VERDICTS.get(overall.lower())
    if verdict is None:
        return [unknown("dcgm.health.overall", f"overall health is {overall!r}, which is no word that is known")]
    if verdict is Verdict.HEALTHY or worst([verdict, *(one.verdict for one in found)]) is not verdict:
        return []
    same = any(one.verdict is verdict for one in found)
    return [] if same else [finding("dcgm.health.overall", overall, "overall health")]


def _overall(document: Any, text: str) -> str | None:
    if isinstance(document, dict):
        for path, value in _leaves(document):
            if path and path[-1].lower() == "overall health":
                return value
    found = _OVERALL.search(text)
    return found[1] if found else None


def _leaves(node: Any, path: tuple[str, ...] = (), depth: int = 0) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields path and text of each value of DCGM's trees (``body``, ``children``, ``value``)."""
    if isinstance(node, str):
        yield path, node
    elif isinstance(node, list):
        for item in node:
            yield from _leaves(item, path, depth)
    elif isinstance(node, dict) and depth < 20:  # noqa: PLR2004 - DCGM's own trees have eight levels
        # The word of a system first, then the texts below it: in the file it may stand after them.
        for key, child in sorted(node.items(), key=lambda item: item[0] != "value"):
            yield from _leaves(
                child, path if key in {"body", "children", "value", "overflow"} else (*path, str(key)), depth + 1
            )


def _of_json(document: dict[str, Any]) -> Iterator[_Told]:
    current: _Told | None = None
    for path, value in _leaves(document):
        if not path or path[0] == "header" or path[-1].lower() == "overall health":
            continue
        digits = [segment for segment in path if re.fullmatch(r"(?:GPU ?)?\d{1,3}", segment, re.IGNORECASE)]
        is_gpu = any(segment.lower().startswith("gpu") for segment in path)
        gpu = int(re.sub(r"\D", "", digits[0])) if digits and is_gpu else None
        if value.strip().lower() in VERDICTS:
            current = _Told(gpu, "GPU" if path[-1] in digits or path[-1].lower().startswith("gpu") else path[-1], value.strip())
            yield current
        elif current is not None:
            current.texts.append(value.strip())


def _of_text(text: str) -> Iterator[_Told]:
    gpu: int | None = None
    current: _Told | None = None
    is_of_gpus = True
    told: list[_Told] = []
    for line in text.splitlines():
        cells = _CELLS.match(line.strip())
        if cells is None:
            continue
        left, right = cells[1].strip(), cells[2].strip()
        if _SURE.search(f"{left} {right}"):
            continue
        if left and not right and not left.startswith("->"):
            # The tree names the kind of its entities once, above their numbers: GPU, NvSwitch, CPU.
            is_of_gpus, gpu = left.upper().startswith("GPU"), None
        found = _GPU.fullmatch(left)
        if found:
            gpu = int(found[1] or found[2]) if is_of_gpus or found[1] else None
        named = _TOLD.fullmatch(right) or (None if found else _TOLD.fullmatch(f"{left.lstrip('-> ')}: {right}"))
        if named:
            current = _Told(gpu, named["name"].strip(), named["status"], [named["text"]] if named["text"] else [])
            told.append(current)
        elif right.lower() in VERDICTS:
            current = _Told(gpu, "GPU", right)
            told.append(current)
        elif right and current is not None and not found:
            current.texts.append(right)
    for one in told:
        one.texts = [" ".join(one.texts)] if one.texts else []
    yield from told


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_").removesuffix("_system") or "gpu"


HEALTH: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"\bdcgmi\b.*\bhealth\b")
