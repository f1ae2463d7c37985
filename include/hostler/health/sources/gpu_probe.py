"""Documents of Hostler's own probe, version 1, without what is known of the purchase."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hostler.health.checks import judge_reading, unread
from hostler.health.finding import failed, unknown
from hostler.health.probe_document import DOCUMENT_VERSION, probe_reading
from hostler.health.probe_findings import judge_xids
from hostler.health.reading import Expectation
from hostler.health.roll_up import accelerator_health, source_health, unreadable
from hostler.health.sources.gpu_fields import whole
from hostler.health.sources.json_text import load
from hostler.health.sources.source import Source
from hostler.health.words import DEVICE_WORDS, device_finding, explain_error
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "probe"
_EXPECTED: Final = Expectation(is_persistent=True)


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 1.0 for a text with the probe's own keys."""
    return 1.0 if '"probe_version"' in text or ('"accelerators"' in text and '"kernel_log"' in text) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:  # noqa: ARG001 - the document says it all
    """Judges as the first verdict does, but without a name, a number and an age to expect."""
    document = load(text)
    if not isinstance(document, Mapping):
        return unreadable(KIND, "malformed probe document: no JSON object")
    if document.get("version") != DOCUMENT_VERSION:
        return unreadable(KIND, f"probe document of version {document.get('version')!r}, {DOCUMENT_VERSION} is known")
    try:
        return _judge(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return unreadable(KIND, f"malformed probe document: {type(error).__name__}: {error}")


def _judge(document: Mapping[str, Any]) -> SourceHealth:
    accelerators, notes = [], []
    for device in document["accelerators"]:
        health, unread_ = _accelerator(device)
        accelerators.append(health)
        notes += unread_
    findings = [*_node(document, len(accelerators)), *_kernel(document)]
    return source_health(
        KIND, accelerators, findings=findings, unknown=[*notes, *(f.what for f in findings if f.verdict is Verdict.UNKNOWN)]
    )


def _accelerator(device: Mapping[str, Any]) -> tuple[AcceleratorHealth, list[str]]:
    reading = probe_reading(device)
    if reading.error:
        finding = device_finding(reading.error) or DEVICE_WORDS[-1].finding(reading.error)
        return accelerator_health(index=reading.index, pci=reading.pci, uuid=reading.uuid, findings=(finding,)), []
    findings = [f for f in judge_reading(reading, _EXPECTED) if f.code != "reading.nvlink_active_count"]
    notes = [f"accelerator {reading.index}: {text}" for text in unread(reading)]
    return accelerator_health(index=reading.index, pci=reading.pci, uuid=reading.uuid, findings=findings), notes


def _node(document: Mapping[str, Any], found: int) -> Iterator[Finding]:
    if not document["driver_version"]:
        yield unknown("reading.driver_version", "driver version is not reported")
    errors = "\n".join(str(error) for error in document["errors"])
    if not found:
        known = explain_error(errors)
        yield known or unknown("reading.gpus", f"no accelerator could be read: {errors or 'the probe found none and no error'}")
    on_bus = document.get("pci_accelerator_count")
    if isinstance(on_bus, int) and not isinstance(on_bus, bool) and 0 < found < on_bus:
        what = f"{on_bus} accelerators on the PCI bus, {found} told of by the driver"
        yield failed(
            "count.accelerators", what, HealthAction.REBOOT_NODE, what, "ours: what the bus has, the driver must tell of"
        )


def _kernel(document: Mapping[str, Any]) -> Iterator[Finding]:
    log = document["kernel_log"]
    if not log or not log["is_readable"]:
        why = f"the kernel log could not be read: {(log or {}).get('reason') or 'no reason given'}"
        yield unknown("reading.kernel_log", why)
        return
    version = str(document["driver_version"] or "")
    head = version.split(".", maxsplit=1)[0]
    yield from judge_xids(document["xids"], driver_major=whole(head))


PROBE: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"probe\.py")
