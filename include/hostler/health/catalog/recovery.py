"""The driver's own word on which recovery a GPU needs: Xid 154 lines, NVML, nvidia-smi."""

import re
from dataclasses import dataclass
from typing import Final

from hostler.health.catalog.tables import rows
from hostler.model.enums import HealthAction, Verdict

RECOVERY_XID: Final = 154

_CHANGED = re.compile(r"recovery action changed.*\(([^()]*)\)\D*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One recovery action: how it was spelled, NVIDIA's bucket word, and ours."""

    spelled: str
    nvidia_action: str
    action: HealthAction
    verdict: Verdict
    words: str
    source: str


def recovery_in(line: str) -> str | None:
    """Returns the new action of an Xid 154 line, such as ``None`` or ``GPU Reset Required``; None when it names none."""
    found = _CHANGED.search(line)
    return found.group(1).strip() if found else None


def recovery(spelled: str) -> Recovery:
    """Returns the row of a recovery action; one that is not known asks for a diagnosis, never for nothing."""
    for row in rows("recovery"):
        if spelled.strip().lower() in row["spellings"].split(";"):
            return Recovery(
                spelled=spelled,
                nvidia_action=row["nvidia_action"],
                action=HealthAction(row["action"]),
                verdict=Verdict(row["verdict"]),
                words=row["words"],
                source=row["source"],
            )
    return Recovery(
        spelled=spelled,
        nvidia_action="",
        action=HealthAction.DRAIN_AND_DIAG,
        verdict=Verdict.FAILED,
        words="a recovery action that is not in the table",
        source="ours: what is not known is not ignored",
    )
