"""What the housekeeping may do, as fleet.yaml says it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Housekeeping(StrEnum):
    """How far a housekeeping step goes. ``report``: says what it found. ``mark``: writes it down, too. ``act``: ends it, once it
    has been marked for the grace time.
    """

    REPORT = "report"
    MARK = "mark"
    ACT = "act"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownPolicy:
    """Of one tenant.

    Attributes:
        idle_after_s: the window in which every sample must be idle. grace_s: how long a lease must have been marked before it
            is ended.
    """

    mode: Housekeeping = Housekeeping.REPORT
    idle_after_s: float = 3600
    grace_s: float = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPolicy:
    """Of the deployment.

    Attributes:
        grace_s: how long a thing must have been marked before it is ended.
        stopped_after_s: how long nodes may be stopped before their lease is released: their disks cost on.
    """

    mode: Housekeeping = Housekeeping.REPORT
    grace_s: float = 7 * 86400
    stopped_after_s: float = 3 * 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardVerdict:
    """What the checks say of the data that a step is about to act on.

    Attributes:
        problems: why nothing may be ended, in words; empty when all checks held. report: where a person reads more; may be empty.
    """

    problems: tuple[str, ...] = ()
    report: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardBatch:
    """Rows for a guard: one dictionary a row, all with the same keys.

    Attributes:
        kind: ``telemetry`` or ``inventory``. facts: what the batch is held against, such as the places that had to answer.
    """

    kind: str
    rows: Sequence[Mapping[str, Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)


Guard = Callable[[GuardBatch], GuardVerdict]
"""Judges a batch before anything is ended. Whatever it raises ends nothing either."""
