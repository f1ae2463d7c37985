"""Error texts of nvidia-smi: outputs that tell of faults and of nothing else."""

import re
from typing import Final

from hostler.health.roll_up import accelerator_health, cut, source_health
from hostler.health.sources.source import Source
from hostler.health.words import device_finding, lost_devices, node_finding
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "nvidia-smi-error"
_PIECES = re.compile(r"nvidia|nvml|device handle|\bgpu|no devices were found", re.IGNORECASE)
SHORT_CHARS: Final = 1000
"""A longer text holds a device's error words for other reasons."""
HUNG_EXITS: Final = frozenset({124, 137, 143})


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.6 for a text with a fault text of NVML or nvidia-smi, so that whole documents around one win."""
    if lost_devices(text):
        return 0.6
    return 0.5 if _PIECES.search(text) and node_finding(text) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Names the devices and the node's fault; no word that is known: unknown."""
    devices = [accelerator_health(index=lost.index, pci=lost.pci, findings=(lost.finding,)) for lost in lost_devices(text)]
    node = node_finding(text, None if devices else exit_code)
    findings = [node] if node and not devices else []
    if devices:
        return source_health(KIND, devices, unknown=("the tool stopped at these: the node's other GPUs are not listed",))
    if findings:
        return source_health(KIND, findings=findings)
    loose = device_finding(text) if 0 < len(text.strip()) < SHORT_CHARS else None
    return source_health(KIND, findings=[loose or no_answer(text, command, exit_code)])


def no_answer(text: str, command: str | None, exit_code: int | None) -> Finding:
    """Returns the finding for an output that says nothing: unknown, and worth a look when the tool hung."""
    hung = exit_code in HUNG_EXITS
    said = cut(text.strip().splitlines()[-1]) if text.strip() else "no output"
    tail = "" if exit_code is None else f", exit status {exit_code}"
    what = "the tool was ended by a time limit: the driver may hang" if hung else "nothing that could be judged"
    return Finding(
        code="reading.no_answer",
        what=f"{what} ({said}{tail})",
        verdict=Verdict.UNKNOWN,
        action=HealthAction.RECORD,
        evidence=cut(f"{command or ''} {said}{tail}"),
        source="ours: a tool that does not answer proves nothing but that",
    )


SMI_ERRORS: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"\bnvidia-smi\b")
