"""What one source told at one look: the engine's only input."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hostler.health.catalog import XidContext, xid
from hostler.health.catalog.xids import Repeat
from hostler.health.engine.rules import rule_of
from hostler.health.pci import device_key
from hostler.health.probe_findings import MAX_EVIDENCE, examine
from hostler.model.enums import Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

NODE: Final = ""
"""Stands for the node itself where an accelerator's address could stand."""

KERNEL_LOG: Final = "kernel-log"
LIBRARY: Final = "nvml"
"""The driver's library, whether asked directly or through nvidia-smi: one source."""

_UNIT = re.compile(r"\(GPC (\d+), TPC (\d+)")
_PID = re.compile(r"pid='?(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A finding of a state, and whose it is: a PCI address as ``pci.device_key`` writes it, or ``NODE``."""

    accelerator: str
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A line that was written once, and may be read again at every look of the same boot.

    Attributes:
        at_uptime_s: the kernel's own seconds; None when the line has none. line: tells two lines apart.
        is_follow_up: another fault is the cause. is_recovery: the driver's own word, which overrides earlier lines.
        unit: part of the GPU that repeats are counted on, such as a link; pid: the program's.
    """

    accelerator: str
    finding: Finding
    line: str = ""
    at_uptime_s: float | None = None
    is_follow_up: bool = False
    is_recovery: bool = False
    repeat: Repeat | None = None
    unit: str = ""
    pid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One answer of one source, or its silence.

    Attributes:
        stream: which source; two looks of one stream are never two sources.
        taken_at: tells this look from the last one of its stream; empty when that cannot be told. A look that is told twice
            counts once.
        boot_id: None when not known. is_answered: False when the source gave no answer that could be read.
        seen: accelerators that were read. states, events: what is wrong. unknown: readings that are missing, with words.
    """

    stream: str
    taken_at: str = ""
    boot_id: str | None = None
    is_answered: bool = True
    seen: frozenset[str] = frozenset()
    states: tuple[Located, ...] = ()
    events: tuple[Event, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()


def name_of(entry: AcceleratorHealth) -> str:
    """Returns what the engine calls an accelerator: its address, else its UUID, else its index."""
    if entry.pci:
        return device_key(entry.pci)
    return entry.uuid or ("accelerator" if entry.index is None else f"index {entry.index}")


def look_of(health: SourceHealth, *, stream: str, taken_at: str = "", boot_id: str | None = None) -> Look:
    """Returns the look for what a parser found in any source; findings of verdict unknown become missing readings."""
    located = [Located(accelerator=name_of(entry), finding=found) for entry in health.accelerators for found in entry.findings]
    located += [Located(accelerator=NODE, finding=found) for found in health.findings]
    events = tuple(
        Event(accelerator=entry.accelerator, finding=entry.finding, line=entry.finding.evidence)
        for entry in located
        if rule_of(entry.finding.code).is_event and entry.finding.verdict is not Verdict.UNKNOWN
    )
    return Look(
        stream=stream,
        taken_at=taken_at,
        boot_id=boot_id,
        is_answered=bool(health.accelerators or health.findings) or health.verdict is not Verdict.UNKNOWN,
        seen=frozenset(name_of(entry) for entry in health.accelerators),
        states=_states(located),
        events=events,
        unknown=_missing(located),
    )


def _states(located: Iterable[Located]) -> tuple[Located, ...]:
    return tuple(
        entry
        for entry in located
        if entry.finding.verdict in {Verdict.FAILED, Verdict.DEGRADED} and not rule_of(entry.finding.code).is_event
    )


def _missing(located: Iterable[Located]) -> tuple[tuple[str, str], ...]:
    words = {}
    for entry in located:
        if entry.finding.verdict is Verdict.UNKNOWN:
            whose = f"{entry.accelerator}: " if entry.accelerator else ""
            words[f"{entry.accelerator}/{entry.finding.code.removeprefix('reading.')}"] = f"{whose}{entry.finding.what}"
    return tuple(sorted(words.items()))


def probe_looks(
    document: Mapping[str, Any], *, accelerator: str, accelerator_count: int, taken_at: str = ""
) -> tuple[Look, ...]:
    """Returns the two looks of a probe document: of the driver's library, and of the kernel's log.

    They are two sources: a driver that hides a fault and a log that tells of it are independent of each other.
    """
    health = examine(document, accelerator=accelerator, accelerator_count=accelerator_count)
    node = tuple(found for found in health.findings if not found.code.startswith(("xid.", "reading.kernel_log")))
    boot_id = document.get("boot_id")
    boot = boot_id if isinstance(boot_id, str) and boot_id else None
    driver = replace(health, findings=node)
    is_told = bool(health.accelerators) or any(found.verdict is Verdict.FAILED for found in node)
    first = look_of(driver, stream=LIBRARY, taken_at=taken_at, boot_id=boot)
    return replace(first, is_answered=is_told), _kernel_look(document, taken_at, boot)


def _kernel_look(document: Mapping[str, Any], taken_at: str, boot_id: str | None) -> Look:
    log = document.get("kernel_log")
    if not isinstance(log, Mapping) or not log.get("is_readable"):
        return Look(stream=KERNEL_LOG, taken_at=taken_at, boot_id=boot_id, is_answered=False)
    entries = [entry for entry in document.get("xids") or () if isinstance(entry, Mapping)]
    version = str(document.get("driver_version") or "").split(".")[0]
    events = xid_events(entries, driver_major=int(version) if version.isdigit() else None)
    return Look(stream=KERNEL_LOG, taken_at=taken_at, boot_id=boot_id, events=events)


def xid_events(xids: Iterable[Mapping[str, Any]], *, driver_major: int | None = None) -> tuple[Event, ...]:
    """Returns the events of a boot's Xid lines; companions are the other numbers of the same GPU.

    Args:
        xids: ``code``, ``pci_bus_id``, ``at_uptime_s`` (or None) and ``line`` of each.
    """
    lines = [(int(entry["code"]), device_key(str(entry["pci_bus_id"])), entry) for entry in xids]
    numbers: dict[str, set[int]] = {}
    for code, device, _entry in lines:
        numbers.setdefault(device, set()).add(code)
    events = []
    for code, device, entry in lines:
        line = str(entry.get("line") or "")
        companions = frozenset(numbers[device] - {code})
        rule = xid(code, XidContext(line=line, companions=companions, driver_major=driver_major))
        what = f"Xid {code}: {rule.words}"
        unit, pid = _UNIT.search(line), _PID.search(line)
        uptime = entry.get("at_uptime_s")
        events.append(
            Event(
                accelerator=device,
                finding=Finding(
                    code=f"xid.{code}",
                    what=what,
                    verdict=rule.verdict,
                    action=rule.action,
                    evidence=(line or what)[:MAX_EVIDENCE],
                    source=rule.source,
                ),
                line=line[:MAX_EVIDENCE],
                at_uptime_s=None if uptime is None else float(uptime),
                is_follow_up=rule.is_follow_up,
                is_recovery=rule.code == 154 and rule.nvidia_action != rule.nvidia_immediate,  # noqa: PLR2004 - its number
                repeat=rule.repeat,
                unit=f"GPC {unit.group(1)} TPC {unit.group(2)}" if unit else "" if rule.link is None else f"link {rule.link}",
                pid=pid.group(1) if pid else "",
            )
        )
    return tuple(events)
