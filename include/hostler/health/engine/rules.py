"""How findings become faults: the rows of ``data/faults.csv``."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hostler.health.catalog.tables import rows
from hostler.model.enums import HealthAction

CLEARS: Final = ("looks", "quiet", "reset", "boot", "never")
"""What ends a fault, the easiest first; a fault of several codes takes the hardest."""

WINDOW: Final = 5
"""Looks that a proof counts in."""

HARM: Final = HealthAction.RESET_GPU
"""From this rung on an action may hurt running work, so it needs proof."""

LADDER: Final = (HealthAction.RESTART_SERVICE, HealthAction.RESET_GPU, HealthAction.REBOOT_NODE, HealthAction.DRAIN_AND_REPLACE)
"""Rungs that a fault climbs when the one before did not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """How one kind of finding counts.

    Attributes:
        cause: findings of one accelerator and cause are one fault. is_event: written once, against read at each look.
        good_looks: looks in a row without it that close it. clears: one of ``CLEARS``. at_idle: its action waits for jobs.
        samples: looks in a row before it says anything. proof: bad ones of ``WINDOW`` looks that prove it by themselves.
        reading: field without which a look says nothing of it; empty: none.
    """

    cause: str
    is_event: bool
    good_looks: int
    clears: str
    at_idle: bool
    samples: int
    proof: int
    reading: str
    source: str


@lru_cache(maxsize=4096)
def rule_of(code: str) -> FaultRule:
    """Returns the rule of a finding's code: the first row that fits it."""
    for row in rows("faults"):
        pattern = row["code"]
        if pattern == code or (pattern.endswith("*") and code.startswith(pattern[:-1])):
            return FaultRule(
                cause=row["cause"],
                is_event=row["kind"] == "event",
                good_looks=int(row["good_looks"]),
                clears=row["clears"],
                at_idle=row["timing"] == "idle",
                samples=int(row["samples"]),
                proof=int(row["proof"]),
                reading=row["reading"],
                source=row["source"],
            )
    raise AssertionError("the last row fits every code")


def hardest(first: str, second: str) -> str:
    """Returns the clear condition that is harder to meet."""
    return max(first, second, key=CLEARS.index)


def next_rung(action: HealthAction) -> HealthAction:
    """Returns the next rung of the ladder; the last one stays."""
    return next((rung for rung in LADDER if rung.rank > action.rank), HealthAction.DRAIN_AND_REPLACE)
