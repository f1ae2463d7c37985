"""``nvidia-smi -q`` without ``-x``: the same document as plain text, nested by indentation."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from hostler.health.checks_memory import NOT_REPORTED
from hostler.health.finding import failed, unknown
from hostler.health.roll_up import accelerator_health, source_health
from hostler.health.sources.gpu_fields import whole
from hostler.health.sources.gpu_readings import judged, reading_of
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.health.words import lost_devices, node_finding
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "nvidia-smi-query"
_GPU: Final = re.compile(r"^GPU ([0-9A-Fa-f]+:[0-9A-Fa-f:.]+)\s*$")
_PART: Final = re.compile(r"\s(-d|--display)[\s=]", re.IGNORECASE)
_ONE_GPU: Final = re.compile(r"(^|\s)(-i|--id)[\s=]", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class _Gpu:
    """Values of one GPU by path; ``migs``: how many MIG devices it lists."""

    pci: str
    values: dict[str, str] = field(default_factory=dict)
    migs: int = 0


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 1.0 for the document's title, 0.7 for a GPU's block of it."""
    if "NVSMI LOG" in text:
        return 1.0
    return 0.7 if "    Product" in text and re.search(r"^GPU [0-9A-Fa-f]+:[0-9A-Fa-f:.]+\s*$", text, re.MULTILINE) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each GPU's block; with ``-d`` only what was asked for."""
    head, gpus = _blocks(text)
    lost = lost_devices(text)
    if not gpus and not lost:
        known = node_finding(text, exit_code)
        if known is None and head.get("attached gpus") == "0":
            what = "the driver runs but finds no GPU: drain, reboot; replace when it repeats"
            known = failed(
                "count.none", what, HealthAction.REBOOT_NODE, "Attached GPUs: 0", "nvidia-smi manual, RETURN VALUE 6"
            )
        return source_health(KIND, findings=[known or no_answer(text, command, exit_code)])
    accelerators, notes = _accelerators(gpus, head.get("driver version"), is_part=bool(_PART.search(command or "")))
    accelerators += [accelerator_health(index=one.index, pci=one.pci, findings=(one.finding,)) for one in lost]
    findings = list(_node(head, len(accelerators), command))
    return source_health(
        KIND, accelerators, findings=findings, unknown=[*notes, *(f.what for f in findings if f.verdict is Verdict.UNKNOWN)]
    )


def _accelerators(gpus: list[_Gpu], driver: str | None, *, is_part: bool) -> tuple[list[AcceleratorHealth], list[str]]:
    accelerators, notes = [], []
    for index, gpu in enumerate(gpus):
        reading = reading_of(gpu.values, "text", index=index, pci=gpu.pci, driver=driver)
        if is_part:
            reading = replace(reading, missing={k: v for k, v in reading.missing.items() if v != NOT_REPORTED})
        if reading.is_mig_enabled:
            reading = replace(reading, mig_instance_count=gpu.migs)
        health, unread = judged(reading, extra=list(_mig(gpu)))
        accelerators.append(health)
        notes += unread
    return accelerators, notes


def _blocks(text: str) -> tuple[dict[str, str], list[_Gpu]]:
    """Returns the values of the head, and each GPU's by path; of a path that comes twice the first counts."""
    head: dict[str, str] = {}
    gpus: list[_Gpu] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped:
            continue
        title = _GPU.match(line) if line.startswith("GPU ") else None
        if title:
            gpus.append(_Gpu(pci=title[1]))
            path = []
            continue
        indent = len(line) - len(line.lstrip())
        name, is_pair, value = stripped.partition(" : ")
        if not is_pair and stripped.endswith(" :"):
            name, is_pair = stripped[:-2], ":"
        name = name.rstrip().lower()
        if not gpus:
            if is_pair:
                head.setdefault(name, value.strip())
            continue
        while path and path[-1][0] >= indent:
            path.pop()
        if name == "mig device":
            name = f"mig device {gpus[-1].migs}"
            gpus[-1].migs += 1
        whole = f"{path[-1][1]}/{name}" if path else name
        if is_pair:
            gpus[-1].values.setdefault(whole, value.strip())
        path.append((indent, whole))
    return head, gpus


def _mig(gpu: _Gpu) -> Iterator[Finding]:
    """Yields uncorrectable errors that only the MIG devices tell of."""
    for at in range(gpu.migs):
        count = gpu.values.get(f"mig device {at}/ecc errors/volatile/sram uncorrectable", "")
        if whole(count):
            what = f"MIG device {at}: {count} volatile uncorrectable ECC errors, limit 0"
            yield failed(
                "ecc.volatile_uncorrectable", what, HealthAction.RESET_GPU, what, "Azure/azurehpc-health-checks, GPU ECC check"
            )


def _node(head: dict[str, str], found: int, command: str | None) -> Iterator[Finding]:
    if not re.match(r"\d", head.get("driver version", "")):
        yield unknown("reading.driver_version", "driver version is not reported")
    attached = head.get("attached gpus", "")
    if (whole(attached) or 0) > found and not _ONE_GPU.search(command or ""):
        yield unknown("reading.gpus", f"{attached} GPUs attached, {found} listed: nothing is known of the others")


QUERY_TEXT: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"nvidia-smi\s+(.*\s)?(-q|--query|-a)(\s|$)(?!.*-x)")
