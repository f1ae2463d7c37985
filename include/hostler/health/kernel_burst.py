"""Kernel lines in the company of their neighbours: what one line says can hang on another (pure).

- Xid 45 is a follow-up when another Xid of its GPU is near, and asks for the fabric manager when it is alone;
- Xid 48 drains before its reset when a row remap (63, 64) is near; bits of Xid 74 follow other Xids;
- Xid 144 to 150 that refer to Xid 154 take its action;
- the data lines of an SXid follow its first line;
- a message over several lines names its GPU in the first of them.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from hostler.health.catalog import RECOVERY_XID, cause_in
from hostler.health.catalog.nvlink import CLEANUP_XID, NVLINK4_XID
from hostler.health.catalog.xids import DOUBLE_BIT_XID
from hostler.health.kernel_event import KernelEvent, LineKind
from hostler.health.kernel_lines import read_message, xid_event
from hostler.health.kernel_text import KernelText, Moment, read_text
from hostler.health.pci import device_key

BEFORE_S: Final = 60.0
AFTER_S: Final = 10.0
"""An Xid belongs to the burst of another when it is so near on the same clock. Source: ours; NVSentinel counts 3 min as one burst."""
NEAR_LINES: Final = 5
"""The same for lines that tell no common clock."""
MOST_WAITING: Final = 256
_MOST_DEVICES: Final = 512
_MOST_REMEMBERED: Final = 64
_NAMED_FOR_LINES: Final = 3

_HANGS_ON_OTHERS: Final = frozenset({CLEANUP_XID, DOUBLE_BIT_XID, NVLINK4_XID})
_BY_RECOVERY: Final = "XID_154_EVAL"
_ANY_DEVICE: Final = ""


@dataclass(slots=True)
class _Entry:
    number: int
    text: KernelText
    event: KernelEvent


@dataclass(frozen=True, slots=True)
class _Seen:
    """An event of a device, where it was, and when; ``code`` is the cause for a follow-up."""

    code: int
    number: int
    moment: Moment | None
    event: KernelEvent


class KernelLog:
    """Reads a kernel log line by line. Holds back the few lines that later ones decide, and what comes after those."""

    def __init__(self) -> None:
        """Begins with no memory."""
        self._number = 0
        self._waiting: deque[_Entry] = deque()
        self._seen: OrderedDict[str, deque[_Seen]] = OrderedDict()
        self._switches: OrderedDict[tuple[str, int], _Seen] = OrderedDict()
        self._named: tuple[int, str] | None = None
        self._uuids: OrderedDict[str, str] = OrderedDict()

    @property
    def is_waiting(self) -> bool:
        """True when lines are held back; ``flush`` decides them as they are."""
        return bool(self._waiting)

    def feed(self, line: str) -> list[KernelEvent]:
        """Takes the next line. Returns the events that are decided by now, in the order of their lines."""
        self._number += 1
        text = read_text(line)
        event = self._complete(read_message(text))
        self._waiting.append(_Entry(self._number, text, event))
        if event.kind is LineKind.XID and event.code is not None:
            self._remember(event.pci or _ANY_DEVICE, _Seen(event.code, self._number, event.moment, event))
        return list(self._decided())

    def flush(self) -> list[KernelEvent]:
        """Decides what is still held back; the input has ended or rests. Returns the events in the order of their lines."""
        return list(self._decided(is_over=True))

    def _decided(self, *, is_over: bool = False) -> Iterator[KernelEvent]:
        while self._waiting:
            first = self._waiting[0]
            if not is_over and self._must_wait(first):
                return
            self._waiting.popleft()
            yield self._judge(first)

    def _must_wait(self, entry: _Entry) -> bool:
        event = entry.event
        hangs = event.code in _HANGS_ON_OTHERS and event.kind is LineKind.XID and cause_in(event.line) is None
        if not (hangs or event.nvidia_action == _BY_RECOVERY) or len(self._waiting) >= MOST_WAITING:
            return False
        if event.code == CLEANUP_XID and (event.moment is None or self._companions(entry)):
            return False
        newest = self._waiting[-1]
        apart = _distance(entry.event.moment, newest.event.moment)
        return newest.number - entry.number < NEAR_LINES if apart is None else apart <= AFTER_S

    def _judge(self, entry: _Entry) -> KernelEvent:
        event = entry.event
        if event.kind is not LineKind.XID or event.code is None:
            return event
        if event.code in _HANGS_ON_OTHERS:
            companions = self._companions(entry)
            judged = xid_event(entry.text, event.code, event.pci, companions)
            cause = cause_in(event.line) or min(companions - {CLEANUP_XID}, default=None)
            if event.code == CLEANUP_XID and cause is not None:
                # One fault is followed by a 45 per channel: each keeps the burst open for the next.
                self._remember(event.pci or _ANY_DEVICE, _Seen(cause, entry.number, event.moment, judged))
            return judged
        return self._by_recovery(entry) if event.nvidia_action == _BY_RECOVERY else event

    def _by_recovery(self, entry: _Entry) -> KernelEvent:
        told = [seen for seen in self._near(entry) if seen.code == RECOVERY_XID]
        if not told:
            return entry.event
        driver = told[-1].event
        return replace(
            entry.event,
            action=driver.action,
            verdict=driver.verdict,
            is_fatal=driver.is_fatal,
            what=f"{entry.event.what}; {driver.what}",
        )

    def _companions(self, entry: _Entry) -> frozenset[int]:
        codes = {seen.code for seen in self._near(entry) if seen.number != entry.number and seen.code != RECOVERY_XID}
        if self._switch_failed(entry):
            codes.add(NVLINK4_XID)  # a fault of the switch reaches each GPU behind it as an Xid 74
        return frozenset(codes - {entry.event.code} if entry.event.code is not None else codes)

    def _switch_failed(self, entry: _Entry) -> bool:
        return entry.event.code == CLEANUP_XID and any(
            seen.event.is_fatal and _is_near(entry, seen) for seen in self._switches.values()
        )

    def _near(self, entry: _Entry) -> list[_Seen]:
        key = device_key(entry.event.pci) if entry.event.pci else _ANY_DEVICE
        return [seen for seen in self._seen.get(key, ()) if _is_near(entry, seen)]

    def _remember(self, pci: str, seen: _Seen) -> None:
        key = device_key(pci) if pci else _ANY_DEVICE
        self._seen.setdefault(key, deque(maxlen=_MOST_REMEMBERED)).append(seen)
        self._seen.move_to_end(key)
        while len(self._seen) > _MOST_DEVICES:
            self._seen.popitem(last=False)

    def _complete(self, event: KernelEvent) -> KernelEvent:
        """Adds what earlier lines tell of this one: the GPU it is about, the SXid whose data it is."""
        if event.kind is LineKind.SXID:
            return self._of_switch(event)
        if event.pci is None and (event.kind is LineKind.FALLEN_OFF_BUS or event.rule.startswith("driver.")):
            if self._named is not None and self._number - self._named[0] <= _NAMED_FOR_LINES:
                return replace(event, pci=self._named[1])
        elif event.pci is None and event.kind is LineKind.XID:
            uuid = _uuid_in(event.line)
            return replace(event, pci=self._uuids.get(uuid)) if uuid else event
        elif event.pci is not None and event.kind is LineKind.OTHER and "NVRM" in event.line:
            if "The NVIDIA GPU" in event.line:  # the head of a message over several lines
                self._named = (self._number, event.pci)
            self._learn(event)
        return event

    def _learn(self, event: KernelEvent) -> None:
        uuid = _uuid_in(event.line)
        if uuid and event.pci:
            self._uuids[uuid] = event.pci
            while len(self._uuids) > _MOST_DEVICES:
                self._uuids.popitem(last=False)

    def _of_switch(self, event: KernelEvent) -> KernelEvent:
        if event.code is None:
            return event
        key = (event.pci or _ANY_DEVICE, event.code)
        before = self._switches.get(key)
        # Only the first line of an SXid says whether it is fatal; its data lines follow at once.
        if before is not None and "atal" not in event.line and _is_close(before, self._number, event.moment):
            first = before.event
            return replace(
                event,
                action=first.action,
                verdict=first.verdict,
                is_fatal=first.is_fatal,
                is_follow_up=True,
                link=first.link,
                what=f"data of: {first.what}",
            )
        self._switches[key] = _Seen(key[1], self._number, event.moment, event)
        while len(self._switches) > _MOST_DEVICES:
            self._switches.popitem(last=False)
        return event


def read_log(lines: Iterable[str]) -> list[KernelEvent]:
    """Returns one event a line of a whole log, in its order."""
    log = KernelLog()
    events: list[KernelEvent] = []
    for line in lines:
        events += log.feed(line)
    return events + log.flush()


def _distance(one: Moment | None, other: Moment | None) -> float | None:
    return None if one is None or other is None else one.distance_s(other)


def _is_near(entry: _Entry, seen: _Seen) -> bool:
    apart = _distance(entry.event.moment, seen.moment)
    if apart is None:
        # A cleanup comes after its cause: what follows it without a time belongs to something else.
        is_cause = seen.number < entry.number or entry.event.code != CLEANUP_XID
        return is_cause and abs(entry.number - seen.number) <= NEAR_LINES
    return apart <= (BEFORE_S if seen.number < entry.number else AFTER_S)


def _is_close(seen: _Seen, number: int, moment: Moment | None) -> bool:
    apart = _distance(seen.moment, moment)
    return number - seen.number <= NEAR_LINES if apart is None else apart <= AFTER_S


def _uuid_in(line: str) -> str | None:
    at = line.find("GPU-")
    uuid = line[at : at + 40] if at >= 0 else ""
    return uuid.lower() if len(uuid) == 40 and uuid.count("-") == 5 else None  # noqa: PLR2004 - GPU- and the 36 of a UUID
