"""What one probe document says, as findings with their source (pure).

The probe's own fields are in ``recipes.probe``. A needed reading that is missing is a finding ``reading.<field>`` with verdict
unknown; it is never taken for healthy.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hostler.health.catalog import RECOVERY_XID, XidContext, expect, xid
from hostler.health.checks import judge_reading
from hostler.health.probe_document import DOCUMENT_VERSION, probe_reading
from hostler.health.reading import Expectation
from hostler.health.roll_up import EVIDENCE_CHARS as MAX_EVIDENCE
from hostler.health.roll_up import accelerator_health, label, source_health, worst
from hostler.health.words import explain_error
from hostler.model.accelerators import ACCELERATORS
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

__all__ = ["DOCUMENT_VERSION", "MAX_EVIDENCE", "SOURCE", "examine", "judge_xids", "worst"]

SOURCE: Final = "probe"

Reading = Mapping[str, Any]


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
    missing = [
        f"{label(one, at)}: {f.what}"
        for at, one in enumerate(accelerators)
        for f in one.findings
        if f.verdict is Verdict.UNKNOWN
    ]
    missing += [entry.what for entry in node if entry.verdict is Verdict.UNKNOWN]
    return source_health(SOURCE, accelerators, findings=node, unknown=missing)


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
    return accelerator_health(index=index, pci=device["pci_bus_id"] or None, uuid=device.get("uuid"), findings=findings)


def _findings(device: Reading, accelerator: str, accelerator_count: int) -> list[Finding]:
    if device["error"]:
        error = str(device["error"])
        known = explain_error(error)
        code = known.code if known is not None and known.code.startswith("device.") else "device.error"
        return [finding(code, Verdict.FAILED, HealthAction.REBOOT_NODE, error, "NVML error strings")]
    found = judge_reading(probe_reading(device), of_purchase(accelerator, accelerator_count))
    return [entry for entry in found if entry.verdict is not Verdict.HEALTHY]


def of_purchase(accelerator: str, accelerator_count: int) -> Expectation:
    """Returns what must be true of each accelerator of a node that was bought with so many of that kind."""
    expected = expect(accelerator, accelerator_count)
    return Expectation(
        accelerator=accelerator,
        names=ACCELERATORS.get(accelerator, (accelerator.lower(),)),
        remaps_rows=expected.remaps_rows,
        has_nvlink=bool(expected.nvlink_count),
        is_persistent=True,
        memory_mib=expected.accelerator_memory_mib,
    )


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
