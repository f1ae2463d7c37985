"""The record of one kernel log line that was understood."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hostler.health.kernel_text import Moment
from hostler.model.enums import HealthAction, Verdict


class LineKind(StrEnum):
    """What a line is about. ``other``: none of these, whether it tells of a fault or not."""

    XID = "xid"
    SXID = "sxid"
    FALLEN_OFF_BUS = "fallen_off_bus"
    PCIE = "pcie"
    NIC = "nic"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """What one line says.

    Attributes:
        code: number of an Xid or SXid; None where the line has none.
        pci: normalised address of the device; None: not told. pid, process: None: not told, or told as unknown.
        nvidia_action: the immediate action in the words of NVIDIA's catalogue; None where the catalogue says nothing.
        action, verdict: what this line alone asks for and makes of its subject. is_fatal: work there cannot go on.
        is_follow_up: the fault is another line's; never counted by itself.
        link: of an NVLink line. rule: stable word for what it is, such as ``xid.79`` or ``host.oom``; empty: nothing known.
        what: in words. source: who says so. line: the message. moment: None when the line tells no time.
    """

    kind: LineKind
    code: int | None = None
    pci: str | None = None
    pid: int | None = None
    process: str | None = None
    nvidia_action: str | None = None
    action: HealthAction = HealthAction.NONE
    verdict: Verdict = Verdict.HEALTHY
    is_fatal: bool = False
    is_follow_up: bool = False
    link: int | None = None
    rule: str = ""
    what: str = ""
    source: str = ""
    line: str = ""
    moment: Moment | None = None

    def document(self) -> dict[str, Any]:
        """Returns the JSON object that ``hostler explain-health --lines`` prints."""
        return {
            "kind": self.kind.value,
            "code": self.code,
            "pci": self.pci,
            "pid": self.pid,
            "process": self.process,
            "nvidia_action": self.nvidia_action,
            "action": self.action.value,
            "fatal": self.is_fatal,
            "what": self.what,
        }
