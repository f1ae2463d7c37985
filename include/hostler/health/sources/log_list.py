"""Several captured outputs in one JSON array: objects with ``stdout``, or bare texts."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from hostler.health.finding import unknown
from hostler.health.roll_up import source_health, unreadable
from hostler.health.sources.json_text import load
from hostler.health.sources.source import Source
from hostler.model.enums import Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "captured-list"
MAX_ENTRIES: Final = 200
Explain = Callable[[str, str, int | None], SourceHealth]
"""Text, command and exit status of an entry -> its health."""


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.99 for an array of objects with outputs, or of texts of several lines."""
    head = text.lstrip()
    if not head.startswith("["):
        return 0.0
    if re.match(r"\[\s{0,80}\{", head) and '"stdout"' in head:
        return 0.99
    return 0.99 if re.match(r'\[\s{0,80}"[^"]{0,400}(?:\\n|NVRM)', head) else 0.0


def source(explain: Explain) -> Source:
    """Returns the source, which hands each entry to ``explain``."""

    def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:  # noqa: ARG001 - each entry has its own
        entries = load(text)
        if not isinstance(entries, list) or not entries:
            return unreadable(KIND, "malformed list: no JSON array with entries")
        return _side_by_side(entries[:MAX_ENTRIES], explain)

    return Source(kind=KIND, detect=detect, parse=parse)


def _side_by_side(entries: list[Any], explain: Explain) -> SourceHealth:
    """No GPU of one entry is a GPU of another: each entry stands for itself."""
    accelerators: list[AcceleratorHealth] = []
    findings: list[Finding] = []
    unread: list[str] = []
    for at, entry in enumerate(entries, start=1):
        name = str(entry.get("name", entry.get("id", at))) if isinstance(entry, Mapping) else str(at)
        part = _part(entry, explain)
        if part is None:
            findings.append(unknown("unknown.entry", f"entry {name} has no output"))
            continue
        accelerators += part.accelerators
        findings += [replace(found, what=f"{name}: {found.what}") for found in part.findings]
        if not part.findings and not part.accelerators and part.verdict is not Verdict.HEALTHY:
            findings.append(unknown("unknown.entry", f"{name}: {'; '.join(part.reasons)}"))
        unread += [f"{name}: {text}" for text in part.unknown]
    return source_health(KIND, accelerators, findings=findings, unknown=unread, silent=Verdict.HEALTHY)


def _part(entry: Any, explain: Explain) -> SourceHealth | None:
    if isinstance(entry, str):
        return explain(entry, "", None)
    if not isinstance(entry, Mapping) or not isinstance(entry.get("stdout"), str):
        return None
    command, code = entry.get("command"), entry.get("exit_code", entry.get("exit_status"))
    is_number = isinstance(code, int) and not isinstance(code, bool)
    return explain(entry["stdout"], command if isinstance(command, str) else "", code if is_number else None)
