"""Cloud TPUs: nodes as the API tells of them, the tables of ``tpu-info``, errors of the runtime on a TPU machine."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hostler.health.finding import noted, unknown
from hostler.health.roll_up import accelerator_health, cut, skipped, source_health, unreadable, words_of
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.gpu_tpu_words import API_SOURCE, HEALTH, RUNTIME, RUNTIME_SOURCE, STATES, SYMPTOMS, Row
from hostler.health.sources.json_text import load
from hostler.health.sources.source import Source
from hostler.health.words import line_of
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

_CELL: Final = re.compile(r"[│┃|]")
_CHIP: Final = re.compile(r"^/dev/(?:accel|vfio/)(\d{1,4})$")
_USE: Final = re.compile(r"([\d.]+)\s*GiB\s*/\s*([\d.]+)\s*GiB", re.IGNORECASE)
_YAML: Final = re.compile(r"^(state|health|healthDescription|acceleratorType|name):\s*(.*?)\s*$", re.MULTILINE)
LEAST_CELLS: Final = 4
"""A row of two columns: two cells between three bars, and what is around them."""
_ODD: Final = (Verdict.UNKNOWN, HealthAction.RECORD, "a word that the API is not known to say")


def finding(code: str, row: Row, evidence: str, source: str) -> Finding:
    """Returns the finding of a row of words."""
    verdict, action, what = row
    return Finding(code=code, what=what, verdict=verdict, action=action, evidence=cut(evidence), source=source)


def detect_api(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for a node of the API, as JSON or as gcloud's YAML."""
    if re.search(r'"acceleratorType"|"acceleratorConfig"|projects/[^"/]+/locations/[^"/]+/nodes/', text) and '"' in text[:200]:
        return 0.95
    return (
        0.9
        if re.search(r"^acceleratorType:", text, re.MULTILINE) and re.search(r"^(state|health):", text, re.MULTILINE)
        else 0.0
    )


def parse_api(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges state, health and symptoms of each node; healthy needs both READY and HEALTHY."""
    nodes = _nodes(text)
    if not nodes:
        if '"state"' in text or '"health"' in text or '"acceleratorType"' in text:
            return unreadable("tpu-node", "the JSON is cut or malformed, or has no TPU node")
        return source_health("tpu-node", findings=[no_answer(text, command, exit_code)])
    accelerators = [
        accelerator_health(index=at, uuid=_name(node), findings=tuple(_node(node))) for at, node in enumerate(nodes)
    ]
    return source_health("tpu-node", accelerators)


def _nodes(text: str) -> list[Mapping[str, Any]]:
    document = load(text)
    if document is None:
        found = dict(_YAML.findall(text)) if not text.lstrip().startswith(("{", "[")) else {}
        symptoms = re.findall(r"^\s*symptomType:\s*(\w+)", text, re.MULTILINE)
        return [{**found, "symptoms": [{"symptomType": word} for word in symptoms]}] if found else []
    if isinstance(document, Mapping):
        document = document.get("nodes", [document])
    return [node for node in document if isinstance(node, Mapping)] if isinstance(document, list) else []


def _name(node: Mapping[str, Any]) -> str | None:
    name = node.get("name")
    return name.rsplit("/", 1)[-1] if isinstance(name, str) else None


def _word(value: Any) -> str:
    if isinstance(value, Mapping):  # a queued resource's state is an object with a state
        value = value.get("state")
    return value.strip().upper() if isinstance(value, str) else ""


def _node(node: Mapping[str, Any]) -> Iterator[Finding]:
    state, health = _word(node.get("state")), _word(node.get("health"))
    described = node.get("healthDescription")
    row = STATES.get(state, _ODD) if state else (Verdict.UNKNOWN, HealthAction.RECORD, "its state is not told")
    if row[0] is not Verdict.HEALTHY:
        yield finding(f"tpu.state.{state.lower() or 'missing'}", row, f"state: {state or 'missing'}", API_SOURCE)
    row = HEALTH.get(health, _ODD) if health else (Verdict.UNKNOWN, HealthAction.RECORD, "its health is not told")
    if row[0] is Verdict.HEALTHY:
        yield noted("tpu.health.healthy", row[2], f"health: {health}", API_SOURCE)
    elif health or state in {"READY", ""}:
        text = f"health: {health or 'missing'}" + (f", {described}" if isinstance(described, str) and described else "")
        yield finding(f"tpu.health.{health.lower() or 'missing'}", row, text, API_SOURCE)
    symptoms = node.get("symptoms")
    for symptom in symptoms if isinstance(symptoms, list) else ():
        word = _word(symptom.get("symptomType")) if isinstance(symptom, Mapping) else ""
        yield finding(f"tpu.symptom.{word.lower() or 'missing'}", SYMPTOMS.get(word, _ODD), f"symptom: {symptom}", API_SOURCE)


def detect_info(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for tpu-info's tables."""
    return 0.95 if re.search(r"TPU Chips|TPU Runtime Utilization|TPU Duty Cycle|TPU HBM Usage|TPU Process Info", text) else 0.0


def parse_info(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Lists the chips; one that no running program tells of is unknown, not idle."""
    chips, used, is_cut = _tables(text)
    error = runtime_error(text)
    if not chips and not used:
        return source_health("tpu-info", findings=[error or no_answer(text, command, exit_code)])
    findings = [error] if error else []
    indexes = sorted(chips) or sorted(used)
    gaps = [at + indexes[0] for at in skipped(index - indexes[0] for index in indexes)]
    if gaps and chips:
        findings.append(unknown("reading.chips", f"chip {words_of(gaps)} is not listed: nothing is known of it"))
    if is_cut:
        findings.append(unknown("reading.table", "a table is cut or malformed"))
    if used and len(used) < len(indexes):
        findings.append(unknown("reading.chips", f"the runtime tells of {len(used)} of {len(indexes)} chips"))
    told = list(used.values())
    accelerators = [
        _chip(index, chips.get(index, ""), told[at] if at < len(told) else None) for at, index in enumerate(indexes)
    ]
    notes = [f"accelerator {one.index}: {f.what}" for one in accelerators for f in one.findings if f.verdict is Verdict.UNKNOWN]
    return source_health(
        "tpu-info",
        accelerators,
        findings=findings,
        unknown=[*notes, *(f.what for f in findings if f.verdict is Verdict.UNKNOWN)],
    )


def _chip(index: int, kind: str, use: str | None) -> AcceleratorHealth:
    if use is None or not _USE.search(use):
        what = f"the runtime tells nothing of it ({use or 'no program runs'}): utilisation is unknown, not 0"
        return accelerator_health(index=index, findings=(unknown("reading.utilisation_ratio", what),))
    return accelerator_health(
        index=index, findings=(noted("tpu.in_service", f"{kind or 'the chip'} answers: {use}", use, "tpu-info"),)
    )


def _tables(text: str) -> tuple[dict[int, str], dict[int, str], bool]:
    """Returns kind by chip number, use by the runtime's own number, and whether a row was cut."""
    chips: dict[int, str] = {}
    used: dict[int, str] = {}
    section, is_cut = "", False
    for line in text.splitlines():
        if re.match(r"\s*TPU |\s*TensorCore ", line):
            section = line.strip()
        cells = [cell.strip() for cell in _CELL.split(line)]
        if len(cells) < LEAST_CELLS or line.strip()[-1:] not in "│┃|":
            is_cut = is_cut or bool(
                len(cells) > 1 and cells[1] and ((cells[1].isascii() and cells[1].isdecimal()) or cells[1].startswith("/dev/"))
            )
            continue
        chip = _CHIP.match(cells[1])
        if chip and section.startswith("TPU Chips"):
            chips[int(chip[1])] = cells[2]
        elif cells[1].isascii() and cells[1].isdecimal() and re.match(r"TPU (Runtime|HBM)", section):
            used[len(used)] = ", ".join(cell for cell in cells[2:] if cell)
    return chips, used, is_cut


def runtime_error(text: str) -> Finding | None:
    """Returns what the runtime's error words mean; None when it has none that is known."""
    for code, pattern, row in RUNTIME:
        found = re.search(pattern, text, re.IGNORECASE)
        if found:
            return finding(code, row, line_of(text, found.start()), RUNTIME_SOURCE)
    return None


def detect_runtime(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.85 for a text about TPUs with an error that is known."""
    if not any(word in text for word in ("tpu", "TPU", "/dev/accel")):
        return 0.0
    return 0.85 if re.search(r"\btpu\b|libtpu|/dev/accel", text, re.IGNORECASE) and runtime_error(text) else 0.0


def parse_runtime(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges by the first error that is known."""
    return source_health("tpu-runtime", findings=[runtime_error(text) or no_answer(text, command, exit_code)])


TPUS: Final = (
    Source(kind="tpu-node", detect=detect_api, parse=parse_api, command=r"gcloud\b.*\btpus?\b|queued-resources"),
    Source(kind="tpu-info", detect=detect_info, parse=parse_info, command=r"\btpu-info\b"),
    Source(kind="tpu-runtime", detect=detect_runtime, parse=parse_runtime, command=r"tpu-runtime|libtpu"),
)
