"""A whole kernel log: each GPU that an Xid names, and the node's own faults. Repeats of one burst are one finding."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from hostler.health.catalog import RECOVERY_XID
from hostler.health.kernel_burst import BEFORE_S, read_log
from hostler.health.kernel_event import KernelEvent, LineKind
from hostler.health.kernel_words import word_rule
from hostler.health.pci import device_key
from hostler.health.roll_up import accelerator_health, cut, source_health
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "kernel-log"
MAX_CHARS: Final = 128 * 1024 * 1024
_SURE = re.compile(
    r"NVRM: |S?Xid \(|fallen off the bus|\bAER: |PCIe Bus Error|mlx5_core|nvidia-nvswitch|nvidia-peermem|\bEDAC \w|\[Hardware Error\]"
)
_LOOKS = re.compile(
    r"^(?:<\d{1,3}>)?\[\s{0,12}\d{1,9}\.\d{1,9}\]|^\d{1,3},\d{1,12},\d{1,18},|\bkernel: |^kern {1,4}:"
    r"|^\[[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d"
    r'|^\{[^\n]{0,2000}"_TRANSPORT" ?: ?"kernel"',
    re.MULTILINE,
)
BARE_LINES: Final = 64
"""So many lines of a text that nothing else recognises are asked whether they are a known message."""
_UNREADABLE: Final = re.compile(
    r"read kernel buffer failed|operation not permitted|permission denied|no such file|command not found"
)


def detect(text: str, name: str) -> float:
    """Returns 0.8 for lines of the kernel's form with words of a driver, 0.55 for either alone, 0.2 by the file's name."""
    looks, sure = bool(_LOOKS.search(text)), bool(_SURE.search(text))
    if looks or sure:
        return 0.8 if looks and sure else 0.55
    return 0.2 if re.search(r"dmesg|kern|syslog|journal|messages", name.rpartition("/")[2]) else 0.0


def knows(text: str) -> bool:
    """True when one of the first lines is a known message, though the text has not the form of a kernel log."""
    return any(word_rule(line) is not None for line in islice(text.splitlines(), BARE_LINES))


@dataclass(slots=True)
class _Device:
    pci: str | None
    events: list[KernelEvent] = field(default_factory=list)


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:  # noqa: ARG001 - a log says it all itself
    """Judges the log; one without a line, or that could not be read, is unknown; one that tells no fault is healthy so far."""
    lines = text.splitlines()
    if not text.strip():
        return source_health(KIND, unknown=("the kernel log is empty",))
    if len(lines) <= 3 and _UNREADABLE.search(text.lower()) and not _LOOKS.search(text):  # noqa: PLR2004 - an error, no log
        return source_health(KIND, unknown=(f"the kernel log could not be read: {cut(text)}",))
    return judge(read_log(lines), has_lines=bool(_LOOKS.search(text) or _SURE.search(text)))


def judge(events: Sequence[KernelEvent], *, has_lines: bool = True) -> SourceHealth:
    """Returns what the events of one boot say together."""
    devices: dict[str, _Device] = {}
    node: list[KernelEvent] = []
    for event in events:
        if is_of_gpu(event):
            key = device_key(event.pci) if event.pci else ""
            devices.setdefault(key, _Device(event.pci)).events.append(event)
        elif event.rule:
            node.append(event)
    accelerators = [_accelerator(device) for device in devices.values()]
    if not has_lines and not devices and not node:
        return source_health(KIND, unknown=("no line of a kernel log in it",))
    return source_health(KIND, accelerators, findings=_findings(node), silent=Verdict.HEALTHY)


def is_of_gpu(event: KernelEvent) -> bool:
    """True when the event tells of one accelerator: an Xid, or a fault of the driver with an address."""
    if event.kind is LineKind.XID:
        return True
    return event.pci is not None and (event.kind is LineKind.FALLEN_OFF_BUS or event.rule.startswith(("driver.", "amd.")))


def _accelerator(device: _Device) -> AcceleratorHealth:
    return accelerator_health(pci=device.pci, findings=_findings(in_force(device.events)))


def in_force(events: Sequence[KernelEvent]) -> list[KernelEvent]:
    """Returns the events that count: from the last Xid 154 with a readable word on, which overrides what came before it.

    What comes after it in the same burst is overridden too: the driver would have said so had its mind changed.
    """
    told = [
        at for at, event in enumerate(events) if event.code == RECOVERY_XID and event.kind is LineKind.XID and _is_read(event)
    ]
    if not told:
        return list(events)
    last = events[told[-1]]
    later = [event for event in events[told[-1] + 1 :] if not _is_same_burst(last, event)]
    return [last, *later]


def _is_read(event: KernelEvent) -> bool:
    return "the driver asks for" in event.what


def _is_same_burst(one: KernelEvent, other: KernelEvent) -> bool:
    if one.moment is None or other.moment is None:
        return True
    apart = one.moment.distance_s(other.moment)
    return apart is None or apart <= BEFORE_S


def _findings(events: Sequence[KernelEvent]) -> list[Finding]:
    """Returns one finding a rule and verdict, the first line as evidence, with how often it came."""
    groups: dict[tuple[str, Verdict, HealthAction, str], list[KernelEvent]] = {}
    for event in events:
        address = "" if is_of_gpu(event) else event.pci or ""
        groups.setdefault((event.rule, event.verdict, event.action, address), []).append(event)
    return [_finding(group) for group in groups.values()]


def _finding(group: Sequence[KernelEvent]) -> Finding:
    first = group[0]
    times = f", {len(group)} lines" if len(group) > 1 else ""
    where = f"{first.pci}: " if first.pci and not is_of_gpu(first) else ""
    return Finding(
        code=first.rule,
        what=f"{where}{first.what}{times}",
        verdict=first.verdict,
        action=first.action,
        evidence=cut(first.line),
        source=first.source,
    )


KERNEL_LOG: Final = Source(
    kind=KIND,
    detect=detect,
    parse=parse,
    command=r"\bdmesg\b|journalctl\b.*(-k\b|--dmesg)|/dev/kmsg|kern\.log",
    max_chars=MAX_CHARS,
)
