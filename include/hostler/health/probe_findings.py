"""What one probe document says, as findings with their source (pure).

The probe's own fields are in ``recipes.probe``. A needed reading that is missing is a finding ``reading.<field>`` with verdict
unknown; it is never taken for healthy.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hostler.health.catalog import (
    LIMITS,
    RECOVERY_XID,
    THROTTLE_REASONS,
    XidContext,
    expect,
    recovery,
    xid,
)
from hostler.health.catalog.limits import BAD_THROTTLE_BITS
from hostler.health.error_words import explain_error
from hostler.model.accelerators import ACCELERATORS
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

DOCUMENT_VERSION: Final = 1
SOURCE: Final = "probe"
MAX_EVIDENCE: Final = 400

_RANK: Final = (Verdict.FAILED, Verdict.UNKNOWN, Verdict.DEGRADED, Verdict.HEALTHY)

Reading = Mapping[str, Any]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the worst: failed, then unknown, then degraded; healthy when there is none."""
    found = set(verdicts)
    return next((verdict for verdict in _RANK if verdict in found), Verdict.HEALTHY)


def highest(actions: Iterable[HealthAction]) -> HealthAction:
    """Returns the highest rung; none when there is none."""
    return max(actions, key=lambda action: action.rank, default=HealthAction.NONE)


def examine(document: Mapping[str, Any], *, accelerator: str, accelerator_count: int) -> SourceHealth:
    """Returns what the document says of each accelerator and of the node.

    Args:
        document: what the probe printed. accelerator: short name that the node was bought with. accelerator_count: how many.
    """
    try:
        accelerators, node = _document(document, accelerator, accelerator_count)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = f"malformed probe document: {type(error).__name__}: {error}"
        accelerators, node = (), [unknown("document.malformed", text)]
    return _sum_up(accelerators, tuple(node))


def _sum_up(accelerators: tuple[AcceleratorHealth, ...], node: tuple[Finding, ...]) -> SourceHealth:
    named = [(finding.verdict, f"{label(entry)}: {finding.what}") for entry in accelerators for finding in entry.findings]
    named += [(finding.verdict, finding.what) for finding in node]
    told = [verdict for verdict in _RANK if verdict is not Verdict.HEALTHY]
    reasons = tuple(dict.fromkeys(text for verdict in told for found, text in named if found is verdict))
    every = [finding for entry in accelerators for finding in entry.findings] + list(node)
    return SourceHealth(
        source=SOURCE,
        accelerators=accelerators,
        verdict=worst(finding.verdict for finding in every),
        action=highest(finding.action for finding in every),
        reasons=reasons,
        findings=node,
        unknown=tuple(dict.fromkeys(text for found, text in named if found is Verdict.UNKNOWN)),
    )


def label(entry: AcceleratorHealth) -> str:
    """Returns ``accelerator 3 (00000000:3b:00.0)``; the address alone where the source told no index."""
    if entry.index is None:
        return f"accelerator {entry.pci}" if entry.pci else "an accelerator"
    return f"accelerator {entry.index}" + (f" ({entry.pci})" if entry.pci else "")


def finding(code: str, verdict: Verdict, action: HealthAction, what: str, source: str, *, evidence: str = "") -> Finding:
    """Returns a finding whose evidence is cut to a bearable length; without one, what it says stands for it."""
    text = (evidence or what)[:MAX_EVIDENCE]
    return Finding(code=code, what=what, verdict=verdict, action=action, evidence=text, source=source)


def unknown(code: str, what: str) -> Finding:
    """Returns a finding that something could not be read."""
    return finding(code, Verdict.UNKNOWN, HealthAction.RECORD, what, "ours: what is not read is not healthy")


def _document(
    document: Reading, accelerator: str, accelerator_count: int
) -> tuple[tuple[AcceleratorHealth, ...], list[Finding]]:
    if document["version"] != DOCUMENT_VERSION:
        text = f"probe document version {document['version']!r}, allowed: {DOCUMENT_VERSION}"
        return (), [unknown("document.version", text)]
    devices = document["accelerators"]
    if not devices:
        return (), [_no_devices(document)]
    entries = tuple(_device(device, position, accelerator, accelerator_count) for position, device in enumerate(devices))
    node = [] if document["driver_version"] else [unknown("reading.driver_version", "driver version is not reported")]
    node += _count(devices, accelerator_count, document.get("pci_accelerator_count"))
    node += _kernel_log(document)
    return entries, node


def _no_devices(document: Reading) -> Finding:
    """Tells a driver that is known to be broken from an answer that says nothing."""
    errors = [str(error) for error in document["errors"]] or ["the probe found no accelerator and no error"]
    for error in errors:
        if (found := explain_error(error)) is not None:
            return found
    return unknown("document.empty", f"no accelerator could be read: {'; '.join(errors)}")


def _count(devices: list[Reading], expected: int, on_bus: int | None) -> list[Finding]:
    found = len(devices)
    if found == expected:
        return []
    lost = sum(1 for device in devices if device["error"])
    source = "what was bought; leptonai/gpud#1209, NVIDIA/NVSentinel#155"
    if found < expected and lost == found:  # one lost device hides the others from nvidia-smi: that does not make them absent
        text = f"{lost} of {expected} accelerators lost; the others are not listed"
        return [finding("count.lost", Verdict.FAILED, HealthAction.REBOOT_NODE, text, source)]
    text = f"{found} accelerators, {expected} expected"
    findings = [finding("count.accelerators", Verdict.FAILED, HealthAction.REBOOT_NODE, text, source)]
    if found < expected and on_bus is not None and on_bus < expected:
        text = f"the PCI bus lists {on_bus} accelerators, {expected} expected"
        findings.append(finding("count.pci", Verdict.FAILED, HealthAction.REBOOT_NODE, text, "lspci"))
    return findings


def _device(device: Reading, position: int, accelerator: str, accelerator_count: int) -> AcceleratorHealth:
    index = device["index"] if device["index"] is not None else position
    findings = _findings(device, accelerator, accelerator_count)
    return AcceleratorHealth(
        index=index,
        pci=device["pci_bus_id"] or None,
        uuid=device.get("uuid"),
        verdict=worst(found.verdict for found in findings),
        action=highest(found.action for found in findings),
        findings=tuple(findings),
    )


def _findings(device: Reading, accelerator: str, accelerator_count: int) -> list[Finding]:
    if device["error"]:
        error = str(device["error"])
        known = explain_error(error)
        code = known.code if known is not None and known.code.startswith("device.") else "device.error"
        return [finding(code, Verdict.FAILED, HealthAction.REBOOT_NODE, error, "NVML error strings")]
    expected = expect(accelerator, accelerator_count)
    findings = _name(device, accelerator)
    for check in (_ecc, _temperature, _throttle, _pcie, _recovery, _persistence):
        findings += check(device)
    if expected.remaps_rows:
        findings += _remapped_rows(device)
    if expected.nvlink_count:
        findings += _nvlink(device)
    return findings + _memory(device, expected.accelerator_memory_mib)


def _needed(device: Reading, field: str, check: Callable[[Any], list[Finding]]) -> list[Finding]:
    """Returns what the check finds, or unknown with the probe's reason when there is no reading."""
    if device[field] is None:
        why = device["missing"].get(field, "no reason given")
        return [unknown(f"reading.{field}", f"{field} could not be read: {why}")]
    return check(device[field])


def _name(device: Reading, accelerator: str) -> list[Finding]:
    allowed = ACCELERATORS.get(accelerator, (accelerator.lower(),))

    def check(name: str) -> list[Finding]:
        if name.lower() in allowed:
            return []
        text = f"is a {name}, {accelerator} was bought"
        return [finding("device.model", Verdict.FAILED, HealthAction.DRAIN_AND_REPLACE, text, "what was bought")]

    return _needed(device, "name", check)


def _ecc(device: Reading) -> list[Finding]:
    if device["is_ecc_enabled"] is False:
        return [finding("ecc.disabled", Verdict.DEGRADED, HealthAction.RECORD, "ECC is off", "NVIDIA/DCGM, ECC_DISABLED")]
    volatile, life = LIMITS["ecc_volatile_uncorrectable_count"], LIMITS["ecc_aggregate_uncorrectable_count"]

    def check(count: int) -> list[Finding]:
        text = f"{count} volatile uncorrectable ECC errors, limit {volatile.value:.0f}"
        if not volatile.is_broken_by(count):
            return []
        return [finding("ecc.volatile_uncorrectable", Verdict.FAILED, HealthAction.RESET_GPU, text, volatile.source)]

    findings = _needed(device, "ecc_volatile_uncorrectable_count", check)
    if device["is_ecc_pending"] is not None and device["is_ecc_pending"] != device["is_ecc_enabled"]:
        text = "the ECC mode changes with the next reboot"
        findings.append(finding("ecc.mode_pending", Verdict.DEGRADED, HealthAction.RECORD, text, "NVIDIA/DCGM, ECC_PENDING"))
    aggregate = device["ecc_aggregate_uncorrectable_count"] or 0
    if device["is_sram_threshold_exceeded"]:
        text = f"SRAM error threshold exceeded ({aggregate} uncorrectable ECC errors in its life): replace"
        source = "nvml.h, nvmlEccSramErrorStatus bThresholdExceeded"
        findings.append(finding("ecc.sram_threshold", Verdict.FAILED, HealthAction.DRAIN_AND_REPLACE, text, source))
    elif device["is_sram_threshold_exceeded"] is None and life.is_broken_by(aggregate):
        text = f"{aggregate} uncorrectable ECC errors in its life, limit 0"
        findings.append(finding("ecc.aggregate_uncorrectable", Verdict.DEGRADED, HealthAction.RECORD, text, life.source))
    return findings


def _remapped_rows(device: Reading) -> list[Finding]:
    """A pending remap is failed, not degraded: a new job must not be admitted before the reset."""
    limit = LIMITS["remapped_uncorrectable_count"]
    source = "NVIDIA GPU memory error management, row remapping; Azure/azurehpc-health-checks"

    def pending(is_pending: bool) -> list[Finding]:
        text = "a row remap is pending: reset the GPU before it gets work"
        found = finding("rows.remap_pending", Verdict.FAILED, HealthAction.RESET_GPU, text, source)
        return [found] if is_pending else []

    def failed(has_failed: bool) -> list[Finding]:
        text = "a row remap has failed: replace"
        found = finding("rows.remap_failed", Verdict.FAILED, HealthAction.DRAIN_AND_REPLACE, text, source)
        return [found] if has_failed else []

    findings = _needed(device, "is_remap_pending", pending) + _needed(device, "has_remap_failed", failed)
    count = device["remapped_uncorrectable_count"]
    if count is not None and limit.is_broken_by(count):
        text = f"{count} rows remapped after uncorrectable errors, limit {limit.value:.0f}"
        findings.append(finding("rows.remapped", Verdict.FAILED, HealthAction.DRAIN_AND_REPLACE, text, limit.source))
    return findings


def _temperature(device: Reading) -> list[Finding]:
    """The slowdown limit is the device's own where it tells one; NVML's margin to it goes before degrees."""
    warn = LIMITS["temperature_c"]

    def check(reading: int) -> list[Finding]:
        slowdown = device["temperature_slowdown_c"]
        if slowdown is not None and reading >= slowdown:
            text = f"{reading} C, slows down at {slowdown} C"
            return [finding("thermal.slowdown", Verdict.FAILED, HealthAction.DRAIN_AND_DIAG, text, "the device's own limit")]
        text = f"{reading} C, limit {warn.value:.0f} C"
        found = finding("thermal.warning", Verdict.DEGRADED, HealthAction.RECORD, text, warn.source)
        return [found] if warn.is_broken_by(reading) else []

    findings = _needed(device, "temperature_c", check)
    margin, least = device["temperature_margin_c"], device["temperature_slowdown_margin_c"]
    if margin is not None and least is not None and margin < least:
        text, source = f"thermal margin {margin} C, slows down below {least} C", "the device's own limit"
        findings.append(finding("thermal.margin", Verdict.FAILED, HealthAction.DRAIN_AND_DIAG, text, source))
    return findings


_THROTTLE_CODES: Final = {
    0x08: "throttle.hardware",
    0x20: "throttle.software_thermal",
    0x40: "throttle.hardware_thermal",
    0x80: "throttle.power_brake",
}


def _throttle(device: Reading) -> list[Finding]:
    source = "nvml.h, nvmlClocksEventReasons; Azure/azurehpc-health-checks"

    def check(mask: int) -> list[Finding]:
        return [
            finding(code, Verdict.DEGRADED, HealthAction.RECORD, f"throttled (mask {mask:#x}): {THROTTLE_REASONS[bit]}", source)
            for bit, code in _THROTTLE_CODES.items()
            if mask & bit & BAD_THROTTLE_BITS
        ]

    return _needed(device, "throttle_mask", check)


def _pcie(device: Reading) -> list[Finding]:
    """An idle link downshifts by design, so it is judged only while the accelerator is busy."""
    width, most, busy = device["pcie_width"], device["pcie_width_max"], device["utilisation_ratio"]
    if width is None or most is None or busy is None or width >= most:
        return []
    limit = LIMITS["busy_utilisation_ratio"]
    text = f"PCIe width x{width} while busy, x{most} expected"
    found = finding("pcie.width", Verdict.DEGRADED, HealthAction.DRAIN_AND_DIAG, text, limit.source)
    return [found] if limit.is_broken_by(busy) else []


def _nvlink(device: Reading) -> list[Finding]:
    if device["is_mig_enabled"]:
        return []  # NVLink queries do not apply in MIG mode

    def check(active: int) -> list[Finding]:
        total = device["nvlink_count"]
        if total and active >= total:
            return []
        text = f"{active} of {total} NVLinks active" if total else "no NVLink found on an NVLink machine"
        source = "NVIDIA/DCGM#198; NVIDIA/NVSentinel dcgmerrorsmapping.csv"
        what = f"{text}: check the fabric manager"
        return [finding("nvlink.inactive", Verdict.FAILED, HealthAction.RESTART_SERVICE, what, source)]

    return _needed(device, "nvlink_active_count", check)


def _memory(device: Reading, expected_mib: int | None) -> list[Finding]:
    total, tolerance = device.get("memory_total_mib"), LIMITS["memory_tolerance_ratio"]
    if total is None or expected_mib is None or total >= expected_mib * (1 - tolerance.value):
        return []
    text = f"{total} MiB of memory, {expected_mib} MiB expected"
    return [finding("memory.short", Verdict.DEGRADED, HealthAction.DRAIN_AND_DIAG, text, tolerance.source)]


def _recovery(device: Reading) -> list[Finding]:
    word = device["recovery_action"]
    if not word or word.lower() == "none":
        return []
    rule = recovery(word)
    return [finding("device.recovery", rule.verdict, rule.action, f"the driver asks for recovery: {word}", rule.source)]


def _persistence(device: Reading) -> list[Finding]:
    source = "Azure/azurehpc-health-checks, persistence mode"
    off = finding("persistence.off", Verdict.DEGRADED, HealthAction.RECORD, "persistence mode is off", source)
    return [off] if device["is_persistent"] is False else []


def _kernel_log(document: Reading) -> list[Finding]:
    log = document["kernel_log"]
    if not log or not log["is_readable"]:
        why = (log or {}).get("reason") or "no reason given"
        return [unknown("reading.kernel_log", f"the kernel log could not be read: {why}")]
    return judge_xids(document["xids"], driver_major=_major(document["driver_version"]))


def _major(version: str | None) -> int | None:
    head = (version or "").split(".")[0]
    return int(head) if head.isdigit() else None


def judge_xids(xids: Iterable[Mapping[str, Any]], *, driver_major: int | None = None) -> list[Finding]:
    """Returns what the Xid lines of a boot add up to, each device and number once, healthy ones left out.

    Xid 154 is the driver's own word and overrides what the device's earlier lines asked for: ``None`` clears them.

    Args:
        xids: ``code``, ``pci_bus_id`` and ``line`` of each, oldest first, all of this boot.
    """
    lines = [(int(entry["code"]), str(entry["pci_bus_id"]).lower(), str(entry.get("line", ""))) for entry in xids]
    numbers: dict[str, set[int]] = {}
    for code, device, _line in lines:
        numbers.setdefault(device, set()).add(code)
    found: dict[tuple[str, int], Finding] = {}
    for code, device, line in lines:
        rule = xid(code, XidContext(line=line, companions=frozenset(numbers[device] - {code}), driver_major=driver_major))
        if code == RECOVERY_XID and rule.nvidia_action != rule.nvidia_immediate:
            found = {key: kept for key, kept in found.items() if key[0] != device}
        if rule.verdict is Verdict.HEALTHY:
            continue
        text = f"{device}: XID {code}: " if code == RECOVERY_XID else f"{device}: XID {code} in this boot: "
        entry = finding(f"xid.{code}", rule.verdict, rule.action, text + rule.words, rule.source, evidence=line)
        known = found.get((device, code))
        if known is None or entry.action.rank > known.action.rank:
            found[device, code] = entry
    return list(found.values())
