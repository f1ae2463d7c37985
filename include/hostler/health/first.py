"""The first verdict on a node, from one probe document (pure).

``failed``: do not give it work. ``degraded``: it works, with a reason to look. ``unknown``: a signal that is needed is missing,
stale or malformed; never taken for healthy. The worst wins: failed, then unknown, then degraded.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from hostler.health.checks import judge_reading
from hostler.health.limits import ERROR_WORDS, LIMITS, NVLINK_ACCELERATORS, ROW_REMAP_ACCELERATORS
from hostler.health.probe_document import DOCUMENT_VERSION, probe_reading
from hostler.health.reading import Expectation
from hostler.health.xids import judge_xids
from hostler.model.accelerators import ACCELERATORS
from hostler.model.enums import Verdict
from hostler.model.health import HealthReport

_RANK: Final = (Verdict.FAILED, Verdict.UNKNOWN, Verdict.DEGRADED)

Finding = tuple[Verdict, str]
Reading = Mapping[str, Any]


def judge(
    document: Mapping[str, Any],
    *,
    accelerator: str,
    accelerator_count: int,
    now: datetime | None = None,
    max_age_s: float = LIMITS["document_age_s"].value,
) -> HealthReport:
    """Returns the verdict on a node.

    Args:
        document: what the probe printed. When it was received, in the asker's time, may be in ``received_at`` (ISO 8601);
            else the node's own ``wall_clock_at`` dates it.
        accelerator: short name that the node was bought with. accelerator_count: how many it must have.
        now: aware time to judge the document's age by; None: its age is not judged.
        max_age_s: above this age the document says nothing of the node any more.
    """
    try:
        findings = _document(document, accelerator, accelerator_count)
        if now is not None:
            findings += _age(document, now, max_age_s)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        findings = [(Verdict.UNKNOWN, f"malformed probe document: {type(error).__name__}: {error}")]
    reasons = tuple(dict.fromkeys(reason for verdict in _RANK for found, reason in findings if found is verdict))
    verdict = next((verdict for verdict in _RANK if any(found is verdict for found, _ in findings)), Verdict.HEALTHY)
    return HealthReport(verdict=verdict, reasons=reasons)


def expectation(accelerator: str, accelerator_count: int) -> Expectation:
    """Returns what must be true of each accelerator of a node that was bought with so many of that kind."""
    return Expectation(
        accelerator=accelerator,
        names=ACCELERATORS.get(accelerator, (accelerator.lower(),)),
        remaps_rows=accelerator in ROW_REMAP_ACCELERATORS,
        has_nvlink=accelerator_count > 1 and accelerator in NVLINK_ACCELERATORS,
        is_persistent=True,
    )


def _age(document: Mapping[str, Any], now: datetime, max_age_s: float) -> list[Finding]:
    stamp = document.get("received_at") or document.get("wall_clock_at")
    if not isinstance(stamp, str):
        return [(Verdict.UNKNOWN, "the probe document has no time")]
    at = datetime.fromisoformat(stamp)
    age_s = (now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds()
    if age_s > max_age_s:
        return [(Verdict.UNKNOWN, f"the probe document is {age_s:.0f} s old, limit {max_age_s:.0f} s")]
    if age_s < -max_age_s:
        return [(Verdict.UNKNOWN, f"the probe document is dated {-age_s:.0f} s ahead of now: the node's clock is wrong")]
    return []


def _document(document: Mapping[str, Any], accelerator: str, accelerator_count: int) -> list[Finding]:
    if document["version"] != DOCUMENT_VERSION:
        return [(Verdict.UNKNOWN, f"probe document version {document['version']!r}, allowed: {DOCUMENT_VERSION}")]
    devices = document["accelerators"]
    if not devices:
        return _no_devices(document)
    findings: list[Finding] = []
    if not document["driver_version"]:
        findings.append((Verdict.UNKNOWN, "driver version is not reported"))
    for position, device in enumerate(devices):
        findings += _device(device, _label(device, position), expectation(accelerator, accelerator_count))
    findings += _count(devices, accelerator_count)
    findings += _kernel_log(document)
    return findings


def _no_devices(document: Mapping[str, Any]) -> list[Finding]:
    """Tells a driver that is known to be broken from an answer that says nothing."""
    errors = [str(error) for error in document["errors"]] or ["the probe found no accelerator and no error"]
    for error in errors:
        for words, meaning in ERROR_WORDS.items():
            if words in error.lower():
                return [(Verdict.FAILED, f"{meaning} ({error})")]
    return [(Verdict.UNKNOWN, f"no accelerator could be read: {'; '.join(errors)}")]


def _count(devices: list[Reading], expected: int) -> list[Finding]:
    found = len(devices)
    if found == expected:
        return []
    lost = sum(1 for device in devices if device["error"])
    if found < expected and lost == found:  # one lost device hides the others from nvidia-smi: that does not make them absent
        return [(Verdict.FAILED, f"{lost} of {expected} accelerators lost; the others are not listed")]
    return [(Verdict.FAILED, f"{found} accelerators, {expected} expected")]


def _label(device: Reading, position: int) -> str:
    index = device["index"] if device["index"] is not None else position
    return f"accelerator {index}" + (f" ({device['pci_bus_id']})" if device["pci_bus_id"] else "")


def _device(device: Reading, label: str, expected: Expectation) -> list[Finding]:
    if device["error"]:
        return [(Verdict.FAILED, f"{label}: {device['error']}")]
    return [(finding.verdict, f"{label}: {finding.what}") for finding in judge_reading(probe_reading(device), expected)]


def _kernel_log(document: Mapping[str, Any]) -> list[Finding]:
    log = document["kernel_log"]
    if not log or not log["is_readable"]:
        return [(Verdict.UNKNOWN, f"the kernel log could not be read: {(log or {}).get('reason') or 'no reason given'}")]
    failed, degraded = judge_xids(document["xids"])
    return [(Verdict.FAILED, reason) for reason in failed] + [(Verdict.DEGRADED, reason) for reason in degraded]
