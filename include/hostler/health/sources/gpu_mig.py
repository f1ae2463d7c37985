"""Refused changes of the MIG layout: the GPUs are well and keep their old layout, which must not be reported as the new one."""

import re
from typing import Final

from hostler.health.finding import degraded
from hostler.health.roll_up import accelerator_health, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.health import SourceHealth

KIND: Final = "mig-change"
_REFUSED: Final = re.compile(
    r"could not be reset|in use by another client|in-use by another|unable to (enable|disable) MIG|error (resetting|applying MIG)"
    r"|pending (enable|disable)|failed to (enable|disable) MIG|not all GPUs? .*reset",
    re.IGNORECASE,
)
_ABOUT: Final = re.compile(r"\bMIG\b|following GPUs could not be reset", re.IGNORECASE)
_GPU: Final = re.compile(r"GPU\s+([0-9A-Fa-f]+:[0-9A-Fa-f:.]+?):?\s+([^\n]*)")
_DONE: Final = re.compile(
    r"MIG configuration applied successfully|Enabled MIG Mode for GPU|Successfully created GPU instance", re.IGNORECASE
)


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.85 for a text about MIG, or about resets, that was refused."""
    if "MIG" not in text and "could not be reset" not in text:
        return 0.0
    return 0.85 if _ABOUT.search(text) and _REFUSED.search(text) and "<" not in text[:1] else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Returns degraded for a refused change: the old layout stays in force, and the change needs the GPUs drained first."""
    if not _REFUSED.search(text):
        if _DONE.search(text) and exit_code in {0, None}:
            return source_health(KIND, unknown=("the change was made; nothing is told of the GPUs' health",))
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    what = (
        "the MIG layout could not be changed since clients hold the GPU: the old layout stays in force; drain it, then repeat"
    )
    source = "NVIDIA/mig-parted#181"
    devices = dict(_GPU.findall(text))
    accelerators = [
        accelerator_health(
            pci=pci.rstrip(".:"), findings=(degraded("mig.change_refused", what, f"{pci}: {why.strip()}", source),)
        )
        for pci, why in devices.items()
        if _REFUSED.search(why)
    ]
    unknown = ("which MIG layout is in force: ask the GPU, not the request",)
    if accelerators:
        return source_health(KIND, accelerators, unknown=unknown)
    return source_health(KIND, findings=[degraded("mig.change_refused", what, text[:400], source)], unknown=unknown)


MIG: Final = Source(
    kind=KIND, detect=detect, parse=parse, command=r"mig-parted|nvidia-smi\s+(.*\s)?(mig|-mig|--multi-instance-gpu)\b"
)
