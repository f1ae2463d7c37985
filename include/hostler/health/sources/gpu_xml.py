"""``nvidia-smi -q -x``: the XML of any driver (documents of DTD v4 to v13), whole or cut."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from hostler.health.finding import failed, unknown
from hostler.health.roll_up import accelerator_health, source_health, unreadable
from hostler.health.sources.gpu_fields import whole
from hostler.health.sources.gpu_readings import judged, reading_of
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.health.words import LostDevice, lost_devices, node_finding
from hostler.model.enums import HealthAction
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "nvidia-smi-xml"
_OPEN: Final = "<nvidia_smi_log"
_CLOSE: Final = "</nvidia_smi_log>"
_SKIPPED: Final = frozenset({"supported_clocks", "processes", "accounted_processes", "mig_devices"})
"""Long lists that no reading is taken from in this way."""
_CLOCKS: Final = re.compile(
    r"<supported_mem_clock>\s*<value>[^<]*</value>\s*(?:<supported_graphics_clock>[^<]*</supported_graphics_clock>\s*)*"
    r"</supported_mem_clock>"
)
"""A third of many documents, and nothing is read from it; only what is whole is left out, so a malformed one is still seen."""
_DEPTH: Final = 8
_ONE_GPU: Final = re.compile(r"(^|\s)(-i|--id)[\s=]", re.IGNORECASE)
_GPU: Final = re.compile(r"(?=<gpu[\s>])")
_HEAD: Final = re.compile(r"<(driver_version|attached_gpus)>\s*([^<]*?)\s*</")
_ERROR_LINE: Final = re.compile(r"^[^<\n]*device handle for[^<\n]*$", re.MULTILINE | re.IGNORECASE)


def detect(text: str, name: str) -> float:
    """Returns 1.0 for a document's beginning, 0.7 for a piece of one."""
    if _OPEN in text:
        return 1.0
    if "<product_name>" in text or ("<gpu " in text and "</" in text):
        return 0.7
    return 0.2 if name.lower().endswith(".xml") and "<" in text else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges every GPU that is told of in full; a document that is cut or malformed leaves the node unknown."""
    if "<!ENTITY" in text:
        return unreadable(KIND, "declares XML entities, which nvidia-smi never does: not read")
    lost = lost_devices(text)
    document = _document(text)
    if document is None:
        return _no_document(text, lost, command, exit_code)
    accelerators, notes = _accelerators(document.gpus, document.head.get("driver_version"))
    accelerators += [
        accelerator_health(index=device.index, pci=device.pci, findings=(device.finding,))
        for device in _unlisted(lost, accelerators)
    ]
    findings = [unknown("reading.document", document.problem)] if document.problem else []
    findings += _node(document.head, len(accelerators), command)
    return source_health(
        KIND, accelerators, findings=findings, unknown=[*notes, *(f.what for f in findings if f.code.startswith("reading."))]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """What could be parsed: None in ``gpus`` stands for a GPU whose element is cut or malformed."""

    gpus: list[ET.Element | None]
    head: dict[str, str]
    problem: str


def _document(text: str) -> _Document | None:
    start = text.find(_OPEN)
    if start < 0:
        return None
    end = text.find(_CLOSE, start)
    body = text[start : end + len(_CLOSE)] if end >= 0 else text[start:]
    if "<supported_mem_clock>" in body:
        body = _CLOCKS.sub("", body)
    if "device handle for" in body:
        body = _ERROR_LINE.sub("", body)
    try:
        root = ET.fromstring(body)  # noqa: S314 - no entity is declared, see parse
    except ET.ParseError as error:
        return _salvage(body, f"the document is cut or malformed: {error}")
    head = {child.tag: (child.text or "").strip() for child in root if not len(child)}
    return _Document(gpus=list(root.iterfind("gpu")), head=head, problem="")


def _salvage(body: str, problem: str) -> _Document:
    """Returns the GPUs whose own elements are whole."""
    first, *pieces = _GPU.split(body)
    gpus: list[ET.Element | None] = []
    for piece in pieces:
        end = piece.find("</gpu>")
        try:
            gpus.append(ET.fromstring(piece[: end + len("</gpu>")]) if end >= 0 else None)  # noqa: S314 - as above
        except ET.ParseError:
            gpus.append(None)
    return _Document(gpus=gpus, head=dict(_HEAD.findall(first)), problem=problem)


def _no_document(text: str, lost: list[LostDevice], command: str | None, exit_code: int | None) -> SourceHealth:
    if lost:
        devices = [accelerator_health(index=one.index, pci=one.pci, findings=(one.finding,)) for one in lost]
        return source_health(KIND, devices, unknown=("the tool stopped at these: the node's other GPUs are not listed",))
    known = node_finding(text, exit_code)
    finding = known or no_answer(text, command, exit_code)
    return source_health(KIND, findings=[finding], unknown=() if known else ("no nvidia_smi_log element",))


def _accelerators(gpus: list[ET.Element | None], driver: str | None) -> tuple[list[AcceleratorHealth], list[str]]:
    accelerators, notes = [], []
    for index, gpu in enumerate(gpus):
        if gpu is None:
            accelerators.append(
                accelerator_health(index=index, findings=(unknown("reading.gpu", "its element is cut or malformed"),))
            )
            continue
        values = _flat(gpu, "", 0, {})
        pci = values.get("pci/pci_bus_id") or gpu.get("id")
        reading = reading_of(values, "xml", index=index, pci=pci, driver=driver)
        if reading.is_mig_enabled:
            reading = replace(reading, mig_instance_count=len(gpu.findall("mig_devices/mig_device")))
        health, unread = judged(reading, extra=_mig(gpu))
        accelerators.append(health)
        notes += unread
    return accelerators, notes


def _flat(element: ET.Element, prefix: str, depth: int, values: dict[str, str]) -> dict[str, str]:
    """Returns the text of each leaf by path, and of each block that says something itself, such as ``N/A``."""
    for child in element:
        tag = child.tag
        if tag in _SKIPPED:
            continue
        if len(child) and depth < _DEPTH:
            _flat(child, f"{prefix}{tag}/", depth + 1, values)
        else:
            values[prefix + tag] = (child.text or "").strip()
    return values


def _mig(gpu: ET.Element) -> list[Finding]:
    """Returns uncorrectable errors that only the MIG devices tell of."""
    findings = []
    for device in gpu.iterfind("mig_devices/mig_device"):
        count = (device.findtext("ecc_error_count/volatile_count/sram_uncorrectable") or "").strip()
        if whole(count):
            what = f"MIG device {(device.findtext('index') or '?').strip()}: {count} volatile uncorrectable ECC errors, limit 0"
            findings.append(
                failed(
                    "ecc.volatile_uncorrectable",
                    what,
                    HealthAction.RESET_GPU,
                    what,
                    "Azure/azurehpc-health-checks, GPU ECC check",
                )
            )
    return findings


def _unlisted(lost: list[LostDevice], listed: list[AcceleratorHealth]) -> Iterator[LostDevice]:
    known = {accelerator.pci for accelerator in listed}
    return (device for device in lost if device.pci is None or device.pci not in known)


def _node(head: dict[str, str], found: int, command: str | None) -> Iterator[Finding]:
    """Yields what the document's head says of the node: how many GPUs there should be, which driver."""
    attached = head.get("attached_gpus", "")
    if not head.get("driver_version") or head["driver_version"].upper() == "N/A":
        yield unknown("reading.driver_version", "driver version is not reported")
    if found == 0:
        if attached == "0":
            what = "the driver runs but finds no GPU: drain, reboot; replace when it repeats"
            yield failed("count.none", what, HealthAction.REBOOT_NODE, "attached_gpus: 0", "nvidia-smi manual, RETURN VALUE 6")
        else:
            yield unknown("reading.gpus", "no GPU is listed")
    elif (whole(attached) or 0) > found and not _ONE_GPU.search(command or ""):
        yield unknown("reading.gpus", f"{attached} GPUs attached, {found} listed: nothing is known of the others")


XML: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"nvidia-smi\b.*(-x\b|--xml-format|-q\w*x)")
