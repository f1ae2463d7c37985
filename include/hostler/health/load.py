"""Idle, busy or overloaded, from samples of a window (pure).

A signal that is missing, malformed or timed out counts as busy: idle only when every sample of every accelerator in the whole
window is below the limit. Under MIG the driver tells no utilisation: not known, so busy.
Source: skypilot-org/skypilot#10628, dstackai/dstack#2719.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from hostler.health.catalog import LIMITS


class Load(StrEnum):
    """What a node does. ``unknown`` is not idle: it is treated as busy."""

    IDLE = "idle"
    BUSY = "busy"
    OVERLOADED = "overloaded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at a node's load.

    Attributes:
        at: aware. utilisation_ratios: of each accelerator, 0 to 1; None in it: not told (as under MIG); empty: none told.
        host_ratios: used share of CPU, memory and disk of the host, 0 to 1; empty: not told.
        is_in_use: a login or a job; None: not told.
    """

    at: datetime
    utilisation_ratios: tuple[float | None, ...]
    host_ratios: tuple[float, ...] = ()
    is_in_use: bool | None = None


def load_of(samples: Sequence[Sample], *, now: datetime, window_s: float, every_s: float) -> Load:
    """Returns the load over the window that ends now.

    Args:
        samples: in any order; only those inside the window count.
        every_s: how far two samples may be apart; a gap of more than twice it means that the window was not covered.
    """
    mine = sorted((one for one in samples if 0 <= (now - one.at).total_seconds() <= window_s), key=lambda one: one.at)
    if _is_overloaded(mine):
        return Load.OVERLOADED
    if any(_is_busy(sample) for sample in mine):
        return Load.BUSY
    if not _is_covered(mine, now, window_s, every_s) or any(_is_missing(sample) for sample in mine):
        return Load.UNKNOWN
    return Load.IDLE


def _is_overloaded(samples: Sequence[Sample]) -> bool:
    limit = LIMITS["overload_ratio"]
    return len(samples) > 1 and all(any(limit.is_broken_by(ratio) for ratio in one.host_ratios) for one in samples)


def _is_busy(sample: Sample) -> bool:
    limit = LIMITS["idle_utilisation_ratio"]
    return bool(sample.is_in_use) or any(ratio is not None and not ratio < limit.value for ratio in sample.utilisation_ratios)


def _is_missing(sample: Sample) -> bool:
    ratios = sample.utilisation_ratios
    return not ratios or sample.is_in_use is None or any(ratio is None or not 0 <= ratio <= 1 for ratio in ratios)


def _is_covered(samples: Sequence[Sample], now: datetime, window_s: float, every_s: float) -> bool:
    if not samples:
        return False
    times = [one.at for one in samples]
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    gaps += [(now - times[-1]).total_seconds(), window_s - (now - times[0]).total_seconds()]
    return max(gaps) <= 2 * every_s
