"""Full captures: many outputs of one node, of an idle time and of one under load.

Shapes: ``{"sections": {"idle :: query (-q)": {"command", "stdout"}, ...}}``; one output with its ``command``, ``stdout`` and
``exit_code``; several such, one a line. And the text form, with a title and ``# $ command`` between rules before each output.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hostler.health.finding import unknown
from hostler.health.roll_up import accelerator_health, source_health, unreadable
from hostler.health.sources.json_text import load, load_lines
from hostler.health.sources.source import Source
from hostler.model.enums import Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "nvidia-smi-capture"
MAX_SECTIONS: Final = 200
Explain = Callable[[str, str, int | None], SourceHealth]
"""Text, command and exit status of a section -> its health."""

_TITLE: Final = re.compile(r"^#{20,}\n# (.+)\n# \$ (.+)\n#{20,}\n", re.MULTILINE)
_SILENT: Final = ("nvidia-smi-list", "nvidia-smi-topology", "nvidia-smi-version", "nvidia-smi-pmon")
"""Sources that tell of no health: beside others they add nothing, not even doubt."""
_LISTS: Final = ("--query-compute-apps", "--query-retired-pages", "--help", " -h")


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 1.0 for a document with sections of commands and outputs."""
    if "# $ nvidia-smi" in text and _TITLE.search(text):
        return 1.0
    return 1.0 if '"stdout"' in text and '"command"' in text and text.lstrip().startswith("{") else 0.0


def parser(explain: Explain) -> Callable[..., SourceHealth]:
    """Returns the parser, which hands each section to ``explain``."""

    def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:  # noqa: ARG001 - each section has its own
        pieces = _TITLE.split(text)
        if len(pieces) > 1:
            return _merge(list(_sections(_titled(pieces), explain)))
        document = load(text)
        if not isinstance(document, Mapping):
            lines = load_lines(text)
            if len(lines) > 1 and all(isinstance(line, Mapping) and "stdout" in line for line in lines):
                return _side_by_side(lines, explain)
            return unreadable(KIND, "malformed capture: no JSON object")
        if isinstance(document.get("stdout"), str) and "sections" not in document:
            return _explain(document, explain)
        sections = document.get("sections")
        if not isinstance(sections, Mapping) or not sections:
            return unreadable(KIND, "malformed capture: no sections")
        return _merge(list(_sections(sections, explain)))

    return parse


def _explain(section: Mapping[str, Any], explain: Explain) -> SourceHealth:
    command, code = section.get("command"), section.get("exit_code", section.get("exit_status"))
    text = str(section["stdout"]) + (f"\n{section['stderr']}" if isinstance(section.get("stderr"), str) else "")
    is_number = isinstance(code, int) and not isinstance(code, bool)
    return explain(text, command if isinstance(command, str) else "", code if is_number else None)


def _titled(pieces: list[str]) -> dict[str, dict[str, str]]:
    """Returns the sections of a text capture, which was split at its titles: words before, then title, command, output of each."""
    sections = zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True)
    return {title.strip(): {"command": command.strip(), "stdout": output} for title, command, output in sections}


def _side_by_side(lines: list[Any], explain: Explain) -> SourceHealth:
    """Returns the health of outputs that were captured apart, one a line: no GPU of one is a GPU of another."""
    parts = [_explain(line, explain) for line in lines[:MAX_SECTIONS]]
    names = [str(line.get("id", f"line {at}")) for at, line in enumerate(lines, 1)]
    findings = [replace(f, what=f"{name}: {f.what}") for name, part in zip(names, parts, strict=False) for f in part.findings]
    silent = [
        (name, part) for name, part in zip(names, parts, strict=False) if not part.findings and not part.accelerators
    ]  # fmt: skip
    findings += [unknown("reading.section", f"{name}: {'; '.join(part.reasons)}") for name, part in silent]
    unread = [f"{name}: {text}" for name, part in zip(names, parts, strict=False) for text in part.unknown]
    return source_health(KIND, [one for part in parts for one in part.accelerators], findings=findings, unknown=unread)


def _sections(sections: Mapping[str, Any], explain: Explain) -> Iterator[tuple[str, SourceHealth]]:
    for name, section in list(sections.items())[:MAX_SECTIONS]:
        if not isinstance(section, Mapping) or not isinstance(section.get("stdout"), str):
            yield str(name), unreadable(KIND, "the section has no output")
            continue
        if any(word in str(section.get("command", "")) for word in _LISTS):
            continue
        yield str(name), _explain(section, explain)


def _merge(sections: list[tuple[str, SourceHealth]]) -> SourceHealth:
    """Returns one health of all sections; of one finding on one GPU the first section that has it is quoted."""
    told = [(name, health) for name, health in sections if health.source not in _SILENT]
    if not any(health.accelerators or health.findings for _, health in told):
        return unreadable(KIND, "no section tells of the health of a GPU")
    merged: dict[str, AcceleratorHealth] = {}
    findings: dict[tuple[str, str], Finding] = {}
    unread: list[str] = []
    for name, health in told:
        for place, one in enumerate(health.accelerators):
            key = one.pci or (f"index {one.index}" if one.index is not None else f"{name}, place {place}")
            key = next((known for known, other in merged.items() if _is_same(other, one)), key)
            merged[key] = _joined(merged.get(key), one)
        for finding in health.findings:
            findings.setdefault((finding.code, finding.what), finding)
        unread += [f"{name}: {text}" for text in health.unknown]
        if health.verdict is Verdict.UNKNOWN and not health.accelerators and not health.findings:
            unread += [f"{name}: {text}" for text in health.reasons]
    return source_health(KIND, tuple(merged.values()), findings=tuple(findings.values()), unknown=unread)


def _is_same(left: AcceleratorHealth, right: AcceleratorHealth) -> bool:
    if left.pci and right.pci:
        return left.pci.lower() == right.pci.lower()
    return left.index is not None and left.index == right.index


def _joined(known: AcceleratorHealth | None, more: AcceleratorHealth) -> AcceleratorHealth:
    if known is None:
        return more
    findings = {(finding.code, finding.verdict): finding for finding in (*more.findings, *known.findings)}
    return accelerator_health(
        index=more.index if known.index is None else known.index,
        pci=known.pci or more.pci,
        uuid=known.uuid or more.uuid,
        findings=tuple(findings.values()),
    )


def source(explain: Explain) -> Source:
    """Returns the row of the registry."""
    return Source(kind=KIND, detect=detect, parse=parser(explain))
