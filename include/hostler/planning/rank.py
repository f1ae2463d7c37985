"""The ranking: what fits, best first, each with its true cost and what speaks against it; and what does not fit, with reasons.

Pure: same input, same bytes, whatever the input's order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Final

from hostler.model.offering import Offering, Refusal
from hostler.model.request import NodeRequest
from hostler.planning.cost import DOUBT_RATIO, CostModel, Share, TrueCost
from hostler.planning.filters import Filters, has_true_price, is_price
from hostler.planning.placement import Placement, gangs_of
from hostler.planning.quota import CapacityBook, plain
from hostler.planning.stock import StockMemory
from hostler.planning.terms import PlanTerms

if TYPE_CHECKING:  # see planning.stock
    from hostler.ledger.port import StockOut

_ONE: Final = Decimal(1)
_DIGITS: Final = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An offering that fits.

    Attributes:
        cost: of the whole work on it; None when ranked by list price.
        rank_usd: what it was ranked by: the cost of a useful accelerator-hour, or the price of a node; raised by doubts and by
            lying outside the preferred regions.
        stock_out: why it comes late; None when nothing is remembered.
        notes: what to know before buying: doubts of the price, quotas that were not checked.
    """

    offering: Offering
    cost: TrueCost | None
    rank_usd: Decimal
    stock_out: "StockOut | None"
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The whole answer.

    Attributes:
        ranked: best first. placements: whole gangs, cheapest first; empty unless nodes are mixed or spread.
        refusals: by subject; one for each offering that is out, and for each asked cloud or region that offers nothing.
    """

    ranked: tuple[Ranked, ...]
    placements: tuple[Placement, ...]
    refusals: tuple[Refusal, ...]
    made_at: datetime


def rank_offerings(
    request: NodeRequest, offerings: Iterable[Offering], stock_outs: Iterable["StockOut"], now: datetime, terms: PlanTerms
) -> Ranking:
    """Filters, prices and ranks.

    The rule of rank: what the stock-out memory speaks against comes after all others, soonest first; then the lowest cost, a
    doubted price counting ``DOUBT_RATIO`` times; ties by the offering's key.

    Args:
        offerings: in any order. Of several with one key the least attractive counts (unavailable, then no price, then dearest).
        stock_outs: in any order; those whose ``until`` is not after ``now`` count for nothing.
        now: aware UTC; becomes ``made_at``.

    Raises:
        ValueError: the terms contradict the request; names the field.
    """
    _check(request, terms)
    with localcontext() as context:
        context.prec = _DIGITS
        return _Round(request, StockMemory(stock_outs, now), now, terms).run(offerings)


class _Round:
    """One planning."""

    def __init__(self, request: NodeRequest, memory: StockMemory, now: datetime, terms: PlanTerms) -> None:
        self._request, self._memory, self._now, self._terms = request, memory, now, terms
        self._filters = Filters(request, terms)
        self._book = CapacityBook(terms.capacity)
        self._model = CostModel(terms.costs) if terms.costs is not None else None
        self._is_mixed = terms.steady_count > 0 or terms.spread > 1
        # Nodes that one offering alone must hold: of a mixed gang at least one.
        self._alone = 1 if self._is_mixed else request.node_count
        self._checks_quota = bool(terms.capacity.quotas)
        self._prefers = frozenset(terms.preferred_regions)

    def run(self, offerings: Iterable[Offering]) -> Ranking:
        known = one_per_key(offerings)
        refusals = self._filters.nothing_offered([offering for _, offering in known])
        ranked: list[tuple[tuple[datetime, Decimal, str], Ranked]] = []
        for key, offering in known:
            words = self._filters.reasons(offering)
            if not words:
                words = self._misfits(offering)
            cost = None
            if not words and self._model is not None:
                cost = self._model.cost_of((Share(offering=offering, node_count=self._request.node_count),))
                words = self._dear(cost)
            if words:
                refusals.append(Refusal(subject=key, reason="; ".join(words)))
                continue
            item = self._ranked(key, offering, cost)
            ranked.append(((item.stock_out.until if item.stock_out else self._now, item.rank_usd, key), item))
        ranked.sort(key=lambda pair: pair[0])
        return self._answer([item for _, item in ranked], refusals)

    def _answer(self, ranked: list[Ranked], refusals: list[Refusal]) -> Ranking:
        placements: tuple[Placement, ...] = ()
        if self._is_mixed:
            placements, reasons = gangs_of(
                self._request.node_count, [i.offering for i in ranked], self._terms, self._book, self._model
            )
            used = {share.offering.key for gang in placements for share in gang.shares}
            for item in ranked:
                key = item.offering.key
                if key not in used:
                    refusals.append(Refusal(subject=key, reason=reasons.get(key, "no gang of this request needs it")))
            ranked = [item for item in ranked if item.offering.key in used]
        refusals.sort(key=lambda item: (item.subject, item.reason))
        return Ranking(ranked=tuple(ranked), placements=placements, refusals=tuple(refusals), made_at=self._now)

    def _misfits(self, offering: Offering) -> list[str]:
        words = list(self._book.reasons(offering, self._alone))
        if self._terms.capacity.max_usd_per_hour is not None:
            over = self._book.spending_reason((offering.price_usd_per_hour or Decimal(0)) * self._alone)
            words += [over] if over else []
        return words

    def _dear(self, cost: TrueCost | None) -> list[str]:
        """Returns why the whole work on the offering costs too much or takes too long."""
        if cost is None:
            return ["nodes would be lost so often that the work never ends"]
        terms = self._terms.costs
        if terms is None or not terms.is_length_known:
            return []
        words, most, deadline = [], self._terms.max_total_usd, self._request.deadline_at
        if most is not None and cost.total_usd > most:
            words.append(f"the work costs {plain(cost.total_usd)} USD, the most is {plain(most)}")
        if deadline is not None and self._now + timedelta(hours=float(cost.wall_hours)) > deadline:
            words.append(
                f"the work takes {plain(cost.wall_hours)} hours with losses and start-up, the deadline is {deadline.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            )
        return words

    def _ranked(self, key: str, offering: Offering, cost: TrueCost | None) -> Ranked:
        price = offering.price_usd_per_hour or Decimal(0)
        notes: tuple[str, ...] = ()
        if offering.doubts:
            notes = tuple(f"price doubted: {doubt}" for doubt in offering.doubts)
        if self._checks_quota and (unknown := self._book.unknown(offering)):
            notes += (f"quota not checked: {', '.join(unknown)}",)
        rank = price if cost is None else cost.usd_per_useful_accelerator_hour
        if offering.doubts:
            rank = rank * DOUBT_RATIO if cost is None else rank + (DOUBT_RATIO - 1) * rank * _machine_part(cost)
        if self._prefers and not self._is_preferred(offering):
            rank *= 1 + self._terms.preference_ratio
        return Ranked(offering=offering, cost=cost, rank_usd=rank, stock_out=self._memory.against(offering, key), notes=notes)

    def _is_preferred(self, offering: Offering) -> bool:
        places = (offering.cloud, offering.region, f"{offering.cloud}/{offering.region}")
        return any(place in self._prefers for place in places)


def one_per_key(offerings: Iterable[Offering]) -> list[tuple[str, Offering]]:
    """Returns key and offering, one a key, sorted by key: the least attractive of those that share it."""
    chosen: dict[str, Offering] = {}
    for offering in offerings:
        key = offering.key
        rival = chosen.get(key)
        if rival is None or _attraction(offering) < _attraction(rival):
            chosen[key] = offering
    return [(key, chosen[key]) for key in sorted(chosen)]


def _attraction(offering: Offering) -> tuple[bool, bool, Decimal, str]:
    """Orders offerings of one key, least attractive first; the text makes the order total, so that input order is nothing."""
    price = offering.price_usd_per_hour
    is_true = has_true_price(offering)
    return (offering.is_available, is_true, -price if is_true and price is not None else Decimal(0), repr(offering))


def _machine_part(cost: TrueCost) -> Decimal:
    """Returns the machines' part of the cost: a doubt is about their price, not about disks or moving data."""
    return cost.machine_usd / cost.total_usd if is_price(cost.total_usd) else _ONE


def _check(request: NodeRequest, terms: PlanTerms) -> None:
    steady = {kind.value for kind in request.capacity_types} - {"spot"}
    if terms.steady_count > request.node_count:
        raise ValueError(f"steady_count {terms.steady_count} is more than the gang's {request.node_count} nodes")
    if terms.steady_count and not steady:
        raise ValueError(f"steady_count {terms.steady_count} needs on-demand or reserved among capacity_types")
    if terms.spread > request.node_count:
        raise ValueError(f"spread {terms.spread} is more than the gang's {request.node_count} nodes")


def offerings_of(ranked: Sequence[Ranked]) -> tuple[Offering, ...]:
    """Returns the offerings alone, in order."""
    return tuple(item.offering for item in ranked)
