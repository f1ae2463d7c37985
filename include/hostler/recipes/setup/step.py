"""What a step is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from .machine import Machine
from .options import Options
from .packages import Apt, Dnf


@dataclass(frozen=True)
class Context:
    """All that a step works with."""

    machine: Machine
    options: Options
    packages: Apt | Dnf


def cannot_apply(_context: Context) -> None:
    """For steps that only look: there is nothing we could do."""


def always(_options: Options) -> bool:
    """For steps that every machine needs."""
    return True


def with_accelerators(options: Options) -> bool:
    """For steps that only machines with accelerators need."""
    return options.count > 0


@dataclass(frozen=True)
class Step:
    """One thing that must be so.

    Attributes:
        problem: says in words what is not as it must be; None when all is. It changes nothing, and is both check and proof.
        apply: makes it so; raises StepError, or RebootNeeded when a reboot has to come first.
        is_needed: whether this kind of machine needs it at all.
    """

    name: str
    problem: Callable[[Context], str | None]
    apply: Callable[[Context], None] = cannot_apply
    is_needed: Callable[[Options], bool] = always
