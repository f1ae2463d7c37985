"""One line of a kernel log -> what it says, by itself. ``kernel_burst`` judges lines that depend on others (pure).

Every pattern is linear in the length of the line: no repeat inside a repeat, all of them bounded.
"""

import re
from typing import Final

from hostler.health.catalog import XidContext, sxid, xid
from hostler.health.kernel_event import KernelEvent, LineKind
from hostler.health.kernel_text import KernelText, read_text
from hostler.health.kernel_words import WordRule, word_rule
from hostler.health.pci import normal_pci
from hostler.model.enums import HealthAction, Verdict

FALLEN_XID: Final = 79
"""The catalogue's row of a GPU that has fallen off the bus: it answers for the lines that name no number too."""

_XID = re.compile(r"(?<![A-Za-z])[Xx][Ii][Dd] {0,8}\(([^()]{1,64})\):? {0,8}(\d{1,6})(?![\w.])")
_SXID = re.compile(r"\b[Ss][Xx][Ii][Dd] {0,8}\(([^()]{1,64})\):? {0,8}(\d{1,6})(?![\w.])")
_FALLEN = re.compile(
    r"fallen off(?: {1,4}the {1,4}bus|\s{0,8}$)|\boff the bus and is not\b"
    r"|\bGPU (?:is|was|has been) lost\b|\blost from the bus",
    re.IGNORECASE,
)
_HALF = re.compile(r"NVRM: {0,8}Xid\b|nvswitch\d{0,3}: {0,8}SXid\b")
_NUMBER_WORD = re.compile(r"\bxid:? {0,4}(\d{1,4})\b", re.IGNORECASE)
_PID = re.compile(r"\bpid {0,2}[=:]? {0,2}['\"`]?(\d{1,10})\b")
_NAME = re.compile(r"\bname=((?:[^,]|,(?=[^ ])){1,200})")
_ACTION_TAIL = re.compile(r" {1,4}Recommended Action=")
_ADDRESS = re.compile(r"(?<![0-9a-fA-F:.])((?:[0-9a-fA-F]{4,8}:)[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])(?!:?[0-9a-fA-F])")
_RECEIVED = re.compile(
    r"AER: [^\n]{0,60}error (?:message )?received:? (?:from )?((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
)
"""A port tells which device sent it the error."""
_GPU_AT = re.compile(r"\bGPU (?:at )?(?:PCI:)?((?:[0-9a-fA-F]{1,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)(?![0-9a-fA-F])")
_COLONED = re.compile(r"\(PCI:([0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)\)")
_KILLED = re.compile(r"[Kk]ill(?:ed)? process (\d{1,10})(?:,? {1,2}| )\(([^()]{1,64})\)")
_TASK = re.compile(r"\btask (.{1,64}):(\d{1,10}) blocked")
_STUCK = re.compile(r"stuck for \d{1,9}s! \[([^\]]{1,64}):(\d{1,10})\]")
_FAULTED = re.compile(r"\b([\w./:+-]{1,64})\[(\d{1,10})\]:? (?:segfault at|general protection|trap )")
_UNKNOWN_NAMES: Final = frozenset({"", "<unknown>", "unknown", "n/a"})


def read_line(line: str) -> KernelEvent:
    """Returns what one line says, whatever its form; never raises. A line that says nothing is of kind ``other``."""
    return read_message(read_text(line))


def read_message(text: KernelText) -> KernelEvent:
    """Returns what an unwrapped line says by itself."""
    message = text.message
    found = _XID.search(message)
    if found:
        return xid_event(text, int(found[2]), normal_pci(found[1]))
    found = _SXID.search(message)
    if found:
        return sxid_event(text, int(found[2]), normal_pci(found[1]))
    if _FALLEN.search(message):
        return fallen_event(text, address_in(message))
    if _HALF.search(message):
        return _half_read(text)
    rule = word_rule(message)
    if rule is None:
        return _plain(text)
    return fallen_event(text, address_in(message)) if rule.kind is LineKind.FALLEN_OFF_BUS else _word_event(text, rule)


def xid_event(text: KernelText, code: int, pci: str | None, companions: frozenset[int] = frozenset()) -> KernelEvent:
    """Returns the event of an Xid line; ``companions``: other Xids of its burst on the same GPU."""
    rule = xid(code, XidContext(line=text.message, companions=companions))
    pid, process = _who(text.message)
    return KernelEvent(
        kind=LineKind.XID,
        code=code,
        pci=pci,
        pid=pid,
        process=process,
        nvidia_action=rule.nvidia_action or None,
        action=rule.action,
        verdict=rule.verdict,
        is_fatal=rule.is_fatal,
        is_follow_up=rule.is_follow_up,
        link=rule.link,
        rule=f"xid.{code}",
        what=f"Xid {code}: {rule.words}",
        source=rule.source,
        line=text.message,
        moment=text.moment,
    )


def sxid_event(text: KernelText, code: int, pci: str | None) -> KernelEvent:
    """Returns the event of an NVSwitch line; NVIDIA's Xid catalogue has no action for it."""
    rule = sxid(code, text.message)
    return KernelEvent(
        kind=LineKind.SXID,
        code=code,
        pci=pci,
        action=rule.action,
        verdict=rule.verdict,
        is_fatal=rule.is_fatal,
        link=rule.link,
        rule=f"sxid.{code}",
        what=f"SXid {code}: {rule.words}",
        source=rule.source,
        line=text.message,
        moment=text.moment,
    )


def fallen_event(text: KernelText, pci: str | None) -> KernelEvent:
    """Returns the event of a GPU that is gone: the catalogue's row 79, whether or not the line says the number."""
    rule = xid(FALLEN_XID)
    number = _NUMBER_WORD.search(text.message)
    pid, process = _who(text.message)
    return KernelEvent(
        kind=LineKind.FALLEN_OFF_BUS,
        code=int(number[1]) if number else None,
        pci=pci,
        pid=pid,
        process=process,
        nvidia_action=rule.nvidia_action,
        action=rule.action,
        verdict=rule.verdict,
        is_fatal=True,
        rule="gpu.fallen_off_bus",
        what=rule.words,
        source=rule.source,
        line=text.message,
        moment=text.moment,
    )


def address_in(message: str) -> str | None:
    """Returns the address of the device that the message is about; None when it names none."""
    for pattern in (_RECEIVED, _GPU_AT, _COLONED, _ADDRESS):
        found = pattern.search(message)
        if found:
            return normal_pci(found[1])
    return None


def _word_event(text: KernelText, rule: WordRule) -> KernelEvent:
    pid, process = _who(text.message)
    return KernelEvent(
        kind=rule.kind,
        pci=address_in(text.message),
        pid=pid,
        process=process,
        action=rule.action,
        verdict=rule.verdict,
        is_fatal=rule.is_fatal,
        rule=rule.name,
        what=rule.words,
        source=rule.source,
        line=text.message,
        moment=text.moment,
    )


def _plain(text: KernelText) -> KernelEvent:
    return KernelEvent(
        kind=LineKind.OTHER,
        pci=address_in(text.message),
        action=HealthAction.NONE,
        what="no fault that is known",
        line=text.message,
        moment=text.moment,
    )


def _half_read(text: KernelText) -> KernelEvent:
    """The driver reported an error whose number cannot be read: unknown, never nothing."""
    return KernelEvent(
        kind=LineKind.OTHER,
        pci=address_in(text.message),
        action=HealthAction.RECORD,
        verdict=Verdict.UNKNOWN,
        rule="xid.unreadable",
        what="an Xid or SXid whose number cannot be read",
        source="ours: what cannot be read is unknown",
        line=text.message,
        moment=text.moment,
    )


def _who(message: str) -> tuple[int | None, str | None]:
    """Returns pid and process; what the driver itself calls unknown is None."""
    for pattern, process_at, pid_at in ((_KILLED, 2, 1), (_TASK, 1, 2), (_STUCK, 1, 2), (_FAULTED, 1, 2)):
        found = pattern.search(message)
        if found:
            return int(found[pid_at]), found[process_at]
    pid, name = _PID.search(message), _NAME.search(message)
    return int(pid[1]) if pid else None, _name(name[1]) if name else None


def _name(text: str) -> str | None:
    name = _ACTION_TAIL.split(text)[0].strip().strip("'\"`").strip()
    return None if name.lower() in _UNKNOWN_NAMES else name
