"""The first verdict on a node, from one probe document (pure).

``failed``: do not give it work. ``degraded``: it works, with a reason to look. ``unknown``: a signal that is needed is missing,
stale or malformed; never taken for healthy. The worst wins: failed, then unknown, then degraded.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from hostler.health.limits import (
    BAD_THROTTLE_BITS,
    ERROR_WORDS,
    LIMITS,
    NVLINK_ACCELERATORS,
    ROW_REMAP_ACCELERATORS,
    THROTTLE_REASONS,
)
from hostler.health.xids import judge_xids
from hostler.model.accelerators import ACCELERATORS
from hostler.model.enums import Verdict
from hostler.model.health import HealthReport

DOCUMENT_VERSION: Final = 1

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
        findings += _device(device, _label(device, position), accelerator, accelerator_count)
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


def _device(device: Reading, label: str, accelerator: str, accelerator_count: int) -> list[Finding]:
    if device["error"]:
        return [(Verdict.FAILED, f"{label}: {device['error']}")]
    findings = _name(device, accelerator)
    for check in (_ecc, _temperature, _throttle, _pcie, _recovery, _persistence):
        findings += check(device)
    if accelerator in ROW_REMAP_ACCELERATORS:
        findings += _remapped_rows(device)
    if accelerator_count > 1 and accelerator in NVLINK_ACCELERATORS:
        findings += _nvlink(device)
    return [(verdict, f"{label}: {reason}") for verdict, reason in findings]


def _needed(device: Reading, field: str, check: Callable[[Any], list[Finding]]) -> list[Finding]:
    """Returns what the check finds, or unknown with the probe's reason when there is no reading."""
    if device[field] is None:
        return [(Verdict.UNKNOWN, f"{field} could not be read: {device['missing'].get(field, 'no reason given')}")]
    return check(device[field])


def _name(device: Reading, accelerator: str) -> list[Finding]:
    allowed = ACCELERATORS.get(accelerator, (accelerator.lower(),))

    def check(name: str) -> list[Finding]:
        return [] if name.lower() in allowed else [(Verdict.FAILED, f"is a {name}, {accelerator} was bought")]

    return _needed(device, "name", check)


def _ecc(device: Reading) -> list[Finding]:
    if device["is_ecc_enabled"] is False:
        return [(Verdict.DEGRADED, "ECC is off")]

    def check(count: int) -> list[Finding]:
        limit = LIMITS["ecc_volatile_uncorrectable_count"].value
        reason = f"{count} volatile uncorrectable ECC errors, limit {limit:.0f}"
        return [(Verdict.FAILED, reason)] if count > limit else []

    findings = _needed(device, "ecc_volatile_uncorrectable_count", check)
    if device["is_ecc_pending"] is not None and device["is_ecc_pending"] != device["is_ecc_enabled"]:
        findings.append((Verdict.DEGRADED, "the ECC mode changes with the next reboot"))
    aggregate = device["ecc_aggregate_uncorrectable_count"] or 0
    if device["is_sram_threshold_exceeded"]:
        findings.append(
            (Verdict.FAILED, f"SRAM error threshold exceeded ({aggregate} uncorrectable ECC errors in its life): replace")
        )
    elif device["is_sram_threshold_exceeded"] is None and aggregate > LIMITS["ecc_aggregate_uncorrectable_count"].value:
        findings.append((Verdict.DEGRADED, f"{aggregate} uncorrectable ECC errors in its life, limit 0"))
    return findings


def _remapped_rows(device: Reading) -> list[Finding]:
    """A pending remap is failed, not degraded: a new job must not be admitted before the reset."""
    limit = LIMITS["remapped_uncorrectable_count"].value
    findings = _needed(
        device,
        "is_remap_pending",
        lambda pending: [(Verdict.FAILED, "a row remap is pending: reset the GPU before it gets work")] if pending else [],
    )
    findings += _needed(
        device, "has_remap_failed", lambda failed: [(Verdict.FAILED, "a row remap has failed: replace")] if failed else []
    )
    count = device["remapped_uncorrectable_count"]
    if count is not None and count > limit:
        findings.append((Verdict.FAILED, f"{count} rows remapped after uncorrectable errors, limit {limit:.0f}"))
    return findings


def _temperature(device: Reading) -> list[Finding]:
    def check(reading: int) -> list[Finding]:
        slowdown, warn = device["temperature_slowdown_c"], LIMITS["temperature_c"].value
        if slowdown is not None and reading >= slowdown:
            return [(Verdict.FAILED, f"{reading} C, slows down at {slowdown} C")]
        return [(Verdict.DEGRADED, f"{reading} C, limit {warn:.0f} C")] if reading >= warn else []

    findings = _needed(device, "temperature_c", check)
    margin, least = device["temperature_margin_c"], device["temperature_slowdown_margin_c"]
    if margin is not None and least is not None and margin < least:
        findings.append((Verdict.FAILED, f"thermal margin {margin} C, slows down below {least} C"))
    return findings


def _throttle(device: Reading) -> list[Finding]:
    def check(mask: int) -> list[Finding]:
        bad = [words for bit, words in THROTTLE_REASONS.items() if mask & bit & BAD_THROTTLE_BITS]
        return [(Verdict.DEGRADED, f"throttled (mask {mask:#x}): {', '.join(bad)}")] if bad else []

    return _needed(device, "throttle_mask", check)


def _pcie(device: Reading) -> list[Finding]:
    """An idle link downshifts by design, so it is judged only while the accelerator is busy."""
    width, most, busy = device["pcie_width"], device["pcie_width_max"], device["utilisation_ratio"]
    least = LIMITS["busy_utilisation_ratio"].value
    if width is None or most is None or busy is None or busy < least or width >= most:
        return []
    return [(Verdict.DEGRADED, f"PCIe width x{width} while busy, x{most} expected")]


def _nvlink(device: Reading) -> list[Finding]:
    if device["is_mig_enabled"]:
        return []  # NVLink queries do not apply in MIG mode

    def check(active: int) -> list[Finding]:
        total = device["nvlink_count"]
        if not total:
            return [(Verdict.FAILED, "no NVLink found on an NVLink machine: check the fabric manager")]
        return [(Verdict.FAILED, f"{active} of {total} NVLinks active: check the fabric manager")] if active < total else []

    return _needed(device, "nvlink_active_count", check)


def _recovery(device: Reading) -> list[Finding]:
    action = device["recovery_action"]
    return [(Verdict.FAILED, f"the driver asks for recovery: {action}")] if action and action.lower() != "none" else []


def _persistence(device: Reading) -> list[Finding]:
    return [(Verdict.DEGRADED, "persistence mode is off")] if device["is_persistent"] is False else []


def _kernel_log(document: Mapping[str, Any]) -> list[Finding]:
    log = document["kernel_log"]
    if not log or not log["is_readable"]:
        return [(Verdict.UNKNOWN, f"the kernel log could not be read: {(log or {}).get('reason') or 'no reason given'}")]
    failed, degraded = judge_xids(document["xids"])
    return [(Verdict.FAILED, reason) for reason in failed] + [(Verdict.DEGRADED, reason) for reason in degraded]
