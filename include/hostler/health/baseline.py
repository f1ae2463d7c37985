"""Is a measured performance good? The fleet's own median once there are enough nodes, floors before (pure).

A failed performance test is repeated once, alone, before anything else is thought of the node (NVIDIA/DCGM#272: a test that ran
beside the end of another one failed on a good node). What fails alone, too, is a suspect: it is paired with a node that is known
to be good, so that a fabric between nodes is told from a node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from statistics import median
from typing import Final

from hostler.health.catalog import LIMITS, floor
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding

MAD_TO_SIGMA: Final = 1.4826
"""Median absolute deviation of a normal distribution into its standard deviation. Source: Rousseeuw and Croux 1993."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What measurements may be compared with each other: model, driver and instance type."""

    accelerator: str
    driver_version: str
    instance_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One result of one test on one node.

    Attributes:
        metric: such as ``all_reduce_gb_per_s``; more is better unless ``is_less_better`` (latencies).
        scope: ``node``, ``two nodes`` or ``many nodes``. was_alone: nothing else ran on the node meanwhile.
    """

    node: str
    peer: Peer
    metric: str
    value: float
    at: datetime
    scope: str = "node"
    was_alone: bool = False
    is_less_better: bool = False


class Bound(StrEnum):
    """What a measurement was held against."""

    BASELINE = "baseline"
    FLOOR = "floor"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A measurement's verdict: ``healthy``, ``failed``, or ``unknown`` when there is nothing to hold it against.

    Attributes:
        limit: the least (or most) that is good; None when there is none. bound: where the limit comes from. words: both.
    """

    verdict: Verdict
    limit: float | None
    bound: Bound
    words: str
    source: str


class Next(StrEnum):
    """What to do after a test."""

    NOTHING = "nothing"
    REPEAT_ALONE = "repeat alone"
    PAIR = "pair with a known-good node"
    ACCUSE = "accuse"


def judge(measured: Measurement, history: Iterable[Measurement]) -> Judged:
    """Returns what the measurement is worth.

    Args:
        history: measurements of the fleet, of any kind; the newest of each other node of the same peer, metric and scope counts.
    """
    others = _newest_by_node(measured, history)
    if len(others) >= LIMITS["baseline_nodes"].value:
        return _by_baseline(measured, others)
    return _by_floor(measured)


def _newest_by_node(measured: Measurement, history: Iterable[Measurement]) -> list[float]:
    newest: dict[str, Measurement] = {}
    for one in history:
        is_like = (one.peer, one.metric, one.scope) == (measured.peer, measured.metric, measured.scope)
        if not is_like or one.node == measured.node:
            continue
        known = newest.get(one.node)
        if known is None or (one.at, one.value) > (known.at, known.value):
            newest[one.node] = one
    return sorted(one.value for one in newest.values())


def _by_baseline(measured: Measurement, others: Sequence[float]) -> Judged:
    """The limit is the median less 5 %, or less 3.5 robust deviations where nodes differ by more than that by nature."""
    middle = median(others)
    mad = median(abs(value - middle) for value in others) * MAD_TO_SIGMA
    below, wide = LIMITS["performance_below_ratio"], LIMITS["performance_deviations"]
    slack = max(middle * below.value, mad * wide.value)
    limit = middle + slack if measured.is_less_better else max(0.0, middle - slack)
    text = f"fleet median {middle:.4g} of {len(others)} nodes, deviation {mad:.3g}, limit {limit:.4g}"
    return _judged(measured, limit, Bound.BASELINE, text, f"{below.source}; {wide.source}")


def _by_floor(measured: Measurement) -> Judged:
    peer = measured.peer
    found = floor(measured.metric, instance_type=peer.instance_type, accelerator=peer.accelerator, scope=measured.scope)
    if found is None or measured.is_less_better:
        text = f"no baseline of {LIMITS['baseline_nodes'].value:.0f} nodes and no floor: {measured.value:.4g} is not judged"
        return Judged(verdict=Verdict.UNKNOWN, limit=None, bound=Bound.NONE, words=text, source="")
    return _judged(measured, found.value, Bound.FLOOR, f"floor {found.value:.4g} {found.unit}", found.source)


def _judged(measured: Measurement, limit: float, bound: Bound, text: str, source: str) -> Judged:
    # A value that is not a number is on neither side: written so that it fails.
    is_good = measured.value <= limit if measured.is_less_better else measured.value >= limit
    verdict = Verdict.HEALTHY if is_good else Verdict.FAILED
    words = f"{measured.metric} {measured.value:.4g}: {text}"
    return Judged(verdict=verdict, limit=limit, bound=bound, words=words, source=source)


def next_after(results: Sequence[tuple[Measurement, Judged]], *, paired: Judged | None = None) -> Next:
    """Returns what to do after the tests of one metric on one node, oldest first.

    Args:
        paired: how the suspect did in a test together with a known-good node; None before there was one.
    """
    if not results or results[-1][1].verdict is not Verdict.FAILED:
        return Next.NOTHING
    failed_alone = any(one.was_alone and judged.verdict is Verdict.FAILED for one, judged in results)
    if not failed_alone:
        return Next.REPEAT_ALONE
    if results[-1][0].scope == "node":
        return Next.ACCUSE  # nobody else took part
    if paired is None:
        return Next.PAIR
    return Next.ACCUSE if paired.verdict is Verdict.FAILED else Next.NOTHING


def pairs(suspects: Iterable[str], known_good: Iterable[str], racks: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Returns each suspect with one known-good node, none of them twice; suspects that find none are left out.

    Args:
        racks: topology domain of nodes; a partner of the same one is taken first, since a test across domains tests them too.
    """
    where = racks or {}
    free = sorted(set(known_good) - set(suspects := sorted(set(suspects))))
    found = []
    for suspect in suspects:
        partner = min(free, key=lambda node: (where.get(node) != where.get(suspect) or node not in where, node), default=None)
        if partner is None:
            break
        free.remove(partner)
        found.append((suspect, partner))
    return found


def finding_of(measured: Measurement, judged: Judged) -> Finding | None:
    """Returns the finding of a failed test for the engine, whose proof is a second one, alone; None when it did not fail."""
    if judged.verdict is not Verdict.FAILED:
        return None
    return Finding(
        code=f"performance.{measured.metric}",
        what=judged.words,
        verdict=Verdict.FAILED,
        action=HealthAction.DRAIN_AND_DIAG,
        evidence=f"{measured.metric} = {measured.value:g} at {measured.at.isoformat()}{', alone' * measured.was_alone}",
        source=judged.source,
    )
