"""``nvidia-smi --query-gpu=... --format=csv``: with and without heading and units, with error texts between the rows."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hostler.health.finding import degraded, unknown
from hostler.health.reading import AcceleratorReading
from hostler.health.roll_up import accelerator_health, source_health, unlisted
from hostler.health.sources.csv_rows import HEALTH_COLUMNS, Row, Table, read_table
from hostler.health.sources.gpu_fields import whole
from hostler.health.sources.gpu_readings import judged, reading_of
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.health.words import LostDevice, node_finding
from hostler.model.enums import Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "nvidia-smi-csv"
_COMMAND: Final = r"--query-gpu|--query-retired-pages|--query-compute-apps|--query-remapped-rows|--format[=\s]csv"
HEAD_CHARS: Final = 16384
HEAD_LINES: Final = 24
_LOOP: Final = re.compile(r"(^|\s)(-l|-lms|--loop(-ms)?)\b", re.IGNORECASE)
_ONE_GPU: Final = re.compile(r"(^|\s)(-i|--id)[\s=]", re.IGNORECASE)
_ERROR_CELL: Final = re.compile(r"\[(unknown error|n/a|not supported|gpu [^\]]*|err!)\]|\berr!", re.IGNORECASE)
_GPU_ROW: Final = re.compile(
    r"^[ \t]{0,8}(?:[0-9a-f:.]{1,24}[ \t]{0,8},?|,)?[ \t]{0,8}(nvidia|tesla|geforce|quadro|grid)\b[^,\n]{0,200},",
    re.IGNORECASE | re.MULTILINE,
)


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for a heading of known columns, 0.7 for rows that name GPUs, 0.3 for rows of plain values."""
    if text[:1] in {"<", "{", "[", "+", "|", "="}:
        return 0.0
    head = "\n".join(text[:HEAD_CHARS].splitlines()[:HEAD_LINES])
    if not any(mark in head for mark in ",._"):
        return 0.0
    table = read_table(head, None)
    if table.has_heading:
        return 0.95
    if _GPU_ROW.search(head):
        return 0.7
    cells = {len(row.cells) for row in table.rows}
    if table.lost and table.rows and min(cells) > 1:
        return 0.65
    is_plain = bool(table.rows) and len(cells) == 1 and all(_is_value(cell) for row in table.rows for cell in row.cells)
    return 0.3 if is_plain else 0.0


def _is_value(cell: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?( ?(%|[a-z]+))?|p\d{1,2}", cell, re.IGNORECASE) or _ERROR_CELL.search(cell))


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each row; rows of one GPU are samples of it."""
    table = read_table(text, command)
    if not table.rows:
        return _no_rows(text, table, command, exit_code)
    judges, notes = _judge_rows(table, is_loop=bool(_LOOP.search(command or "")))
    accelerators = _with_indexes(judges)
    accelerators += [accelerator_health(index=one.index, pci=one.pci, findings=(one.finding,)) for one in table.unpaired]
    findings = list(_node(table, accelerators, command))
    if table.is_partial:
        notes.append("the columns are not all named: what stands in the others is not judged")
    return source_health(
        KIND, accelerators, findings=findings, unknown=[*notes, *(f.what for f in findings if f.verdict is Verdict.UNKNOWN)]
    )


def _no_rows(text: str, table: Table, command: str | None, exit_code: int | None) -> SourceHealth:
    if table.lost:
        devices = [accelerator_health(index=one.index, pci=one.pci, findings=(one.finding,)) for one in table.lost]
        return source_health(KIND, devices, unknown=("the tool stopped at these: the node's other GPUs are not listed",))
    finding = node_finding(text, exit_code) or no_answer(text, command, exit_code)
    return source_health(KIND, findings=[finding], unknown=("no row was printed",))


def _judge_rows(table: Table, *, is_loop: bool) -> tuple[list[AcceleratorHealth], list[str]]:
    samples: dict[str, list[AcceleratorHealth]] = {}
    notes: list[str] = []
    for place, row in enumerate(table.rows):
        reading = _reading(row, table)
        health, unread = _judge_row(reading, row, table)
        anonymous = "stream" if is_loop else f"row {place}"
        samples.setdefault(row.identity or (row.lost.pci if row.lost else None) or anonymous, []).append(health)
        notes += unread
    return [_merged(healths) for healths in samples.values()], list(dict.fromkeys(notes))


def _reading(row: Row, table: Table) -> AcceleratorReading:
    return reading_of(
        row.values,
        "csv",
        index=whole(row.values.get("index")),
        pci=next((row.values[key] for key in ("pci.bus_id", "gpu_bus_id") if ":" in row.values.get(key, "")), None)
        or (row.lost.pci if row.lost else None),
        driver=row.values.get("driver_version"),
    ) if table.columns else AcceleratorReading()  # fmt: skip


def _judge_row(reading: AcceleratorReading, row: Row, table: Table) -> tuple[AcceleratorHealth, list[str]]:
    extra: list[Finding] = [row.lost.finding] if row.lost else []
    if row.is_malformed:
        extra.append(unknown("reading.row", f"a row of {len(row.cells)} cells, {len(table.columns)} columns", row.line))
        reading = AcceleratorReading(index=reading.index, uuid=reading.uuid, pci=reading.pci)
    elif not table.columns:
        extra.append(unknown("reading.columns", "the columns are not named: give the command with --command", row.line))
    elif not table.is_partial and not HEALTH_COLUMNS & set(table.columns):
        extra.append(unknown("reading.columns", "nothing was asked for that tells of health", ", ".join(table.columns)))
    health, notes = judged(reading, extra=[*extra, *_loose_errors(row)])
    is_named = row.identity is not None or row.lost is not None
    return (health if is_named else _unnamed(health)), notes


def _loose_errors(row: Row) -> Iterator[Finding]:
    """Yields the errors of cells that no column, or no reading, takes up."""
    errors = [cell for cell in row.cells if re.search(r"unknown error|gpu is lost|requires reset|err!", cell, re.IGNORECASE)]
    if errors and not row.lost:
        from hostler.health.words import device_finding

        finding = device_finding(errors[0], row.line)
        if finding:
            yield finding


def _unnamed(health: AcceleratorHealth) -> AcceleratorHealth:
    """Returns it with ``Unknown Error`` taken as unknown: a row that names no GPU proves no fault of one."""
    if not any(finding.code == "device.unreachable" for finding in health.findings):
        return health
    findings = [
        replace(unknown("reading.row", "the values could not be read: Unknown Error"), evidence=finding.evidence)
        if finding.code == "device.unreachable"
        else finding
        for finding in health.findings
    ]
    return accelerator_health(index=health.index, pci=health.pci, uuid=health.uuid, findings=findings)


def _merged(samples: list[AcceleratorHealth]) -> AcceleratorHealth:
    """Returns one accelerator for its samples: what one of them found counts, the same finding once."""
    if len(samples) == 1:
        return samples[0]
    last = samples[-1]
    findings = {(finding.code, finding.verdict): finding for sample in samples for finding in sample.findings}
    return accelerator_health(index=last.index, pci=last.pci, uuid=last.uuid, findings=tuple(findings.values()))


def _with_indexes(accelerators: list[AcceleratorHealth]) -> list[AcceleratorHealth]:
    """Gives the one GPU without an index the one index that its neighbours leave open."""
    unnamed = [place for place, one in enumerate(accelerators) if one.index is None]
    if (
        len(unnamed) != 1
        or len(accelerators) == 1
        or any(one.index != place for place, one in enumerate(accelerators) if one.index is not None)
    ):
        return accelerators
    place = unnamed[0]
    return [replace(one, index=place) if at == place else one for at, one in enumerate(accelerators)]


def _node(table: Table, accelerators: list[AcceleratorHealth], command: str | None) -> Iterator[Finding]:
    found = len(accelerators)
    counts = {whole(row.values.get("count")) for row in table.rows}
    most = max((count for count in counts if count is not None), default=0)
    asks_one = bool(_ONE_GPU.search(command or ""))
    if most > found and not asks_one:
        yield unknown("reading.gpus", f"{most} GPUs in the node, {found} listed: nothing is known of the others")
    gaps = unlisted(accelerators)
    if gaps and not asks_one:
        yield unknown("reading.gpus", f"GPU {gaps} is not listed: nothing is known of it")
    drivers = {row.values["driver_version"] for row in table.rows if re.match(r"\d", row.values.get("driver_version", ""))}
    drivers |= {row.values["kmd_version"] for row in table.rows if re.match(r"\d", row.values.get("kmd_version", ""))}
    if len(drivers) > 1:
        what = f"driver versions are mixed: {', '.join(sorted(drivers))}"
        yield degraded("driver.mixed_versions", what, what, "ours: one node runs one driver")
    for text in table.errors:
        known = node_finding(text)
        if known:
            yield known


CSV: Final = Source(kind=KIND, detect=detect, parse=parse, command=_COMMAND)

__all__ = ["CSV", "LostDevice", "detect", "parse"]
