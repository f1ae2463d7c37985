"""The ranking: what fits, best first, each with its true cost and what speaks against it; and what does not fit, with reasons.

Pure: same input, same bytes, whatever the input's order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from hostler.catalog.egress import EGRESS
from hostler.catalog.known import Cell, Known, known_of
from hostler.model.offering import Offering, Refusal
from hostler.model.request import NodeRequest
from hostler.planning.cost import DOUBT_RATIO, HOPELESS, CostBasis, CostModel, TrueCost
from hostler.planning.filters import Filters, has_true_price
from hostler.planning.quota import CapacityBook, plain
from hostler.planning.stock import StockMemory
from hostler.planning.terms import PlanTerms

if TYPE_CHECKING:  # see planning.stock; most plans mix and spread nothing
    from hostler.ledger.port import StockOut
    from hostler.planning.placement import Placement

_DIGITS: Final = 28
_ONE: Final = Decimal(1)
_ZERO: Final = Decimal(0)
_RANK: Final = attrgetter("rank_usd")
_SUBJECT: Final = attrgetter("subject", "reason")


class Ranked(NamedTuple):
    """An offering that fits. A tuple, since many are made.

    Attributes:
        rank_usd: what it was ranked by: the cost of a useful accelerator-hour, or the price of a node; raised by doubts and by
            lying outside the preferred regions.
        basis: what the cost rests on; None when ranked by list price.
        stock_out: why it comes late; None when nothing is remembered.
        notes: what to know before buying: doubts of the price, quotas that were not checked.
    """

    offering: Offering
    rank_usd: Decimal
    basis: CostBasis | None
    stock_out: "StockOut | None"
    notes: tuple[str, ...]

    @property
    def cost(self) -> TrueCost | None:
        """Cost of the whole work, if the whole gang lies on this offering; None when ranked by list price."""
        if self.basis is None:
            return None
        with localcontext() as context:
            context.prec = _DIGITS
            return self.basis.cost((self.offering.price_usd_per_hour or Decimal(0)) * self.basis.node_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The whole answer.

    Attributes:
        ranked: best first. placements: whole gangs, cheapest first; empty unless nodes are mixed or spread.
        refusals: by subject; one for each offering that is out, and for each asked cloud or region that offers nothing.
    """

    ranked: tuple[Ranked, ...]
    placements: "tuple[Placement, ...]"
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
    return rank_known(request, one_per_key(offerings), stock_outs, now, terms)


def rank_known(
    request: NodeRequest,
    known: Sequence[Known],
    stock_outs: Iterable["StockOut"],
    now: datetime,
    terms: PlanTerms,
) -> Ranking:
    """As ``rank_offerings``, for offerings that are sorted by key and unique already, as an index keeps them."""
    _check(request, terms)
    with localcontext() as context:
        context.prec = _DIGITS
        return _Round(request, StockMemory(stock_outs, now), now, terms).run(known)


class _CellVerdict(NamedTuple):
    """What is the same for all offerings of a cell: an offering at a price ranks at ``slope * price + offset``.

    ``fits`` is False when kind, place or capacity type were not asked for, or no work would ever end there.
    """

    fits: bool
    basis: CostBasis | None
    slope: Decimal
    offset: Decimal
    notes: tuple[str, ...]


class _Round:
    """One planning."""

    def __init__(self, request: NodeRequest, memory: StockMemory, now: datetime, terms: PlanTerms) -> None:
        self._request, self._memory, self._now, self._terms = request, memory, now, terms
        self._filters = Filters(request, terms)
        self._cells: dict[Cell, _CellVerdict] = {}
        self._book = CapacityBook(terms.capacity)
        self._model = CostModel(terms.costs, request.node_count) if terms.costs is not None else None
        self._is_mixed = terms.steady_count > 0 or terms.spread > 1
        # Nodes that one offering alone must hold: of a mixed gang at least one.
        self._alone = 1 if self._is_mixed else request.node_count
        self._checks_quota = bool(terms.capacity.quotas)
        self._has_own_rates = self._model is not None and self._model.has_own_rates
        self._has_length = terms.costs is not None and terms.costs.is_length_known
        self._remembers = bool(memory)
        self._checks_spending = terms.capacity.max_usd_per_hour is not None
        self._checks_free = self._checks_quota or terms.capacity.reservations is not None
        self._checks_each = (
            self._checks_free or self._checks_spending or self._has_length or self._has_own_rates or self._remembers
        )
        self._prefers = frozenset(terms.preferred_regions)

    def run(self, known: Sequence[Known]) -> Ranking:
        """Judges every offering; ``known`` is sorted by key."""
        refusals = self._filters.nothing_offered([item.offering for item in known])
        ranked: list[Ranked] = []
        cells, is_price_ok, is_plain = self._cells, self._filters.passes, not self._checks_each
        for item in known:
            key, offering, name = item
            cell = cells.get(name)
            if cell is None:
                cell = cells[name] = self._verdict_on(offering)
            price = offering.price_usd_per_hour
            if not cell.fits or price is None or not is_price_ok(offering, price):
                refusals.append(Refusal(subject=key, reason="; ".join(self._filters.reasons(offering)) or HOPELESS))
            elif is_plain and not offering.doubts:
                ranked.append(Ranked(offering, price * cell.slope + cell.offset, cell.basis, None, cell.notes))
            elif words := self._misfits(offering, cell, price):
                refusals.append(Refusal(subject=key, reason="; ".join(words)))
            else:
                ranked.append(self._ranked(item, cell, price))
        # Sorting keeps the order of equals, and they come in the order of their keys.
        ranked.sort(key=_RANK)
        if self._remembers:
            ranked.sort(key=lambda item: item.stock_out.until if item.stock_out else self._now)
        return self._answer(ranked, refusals)

    def _verdict_on(self, offering: Offering) -> _CellVerdict:
        """Returns what holds for every offering of this kind, region and capacity type."""
        fits = self._filters.fits_place(offering)
        basis = self._model.basis(offering) if fits and self._model is not None else None
        if basis is not None and basis.is_refused and not (self._is_mixed or self._has_own_rates):
            fits = False
        factor = self._factor(offering)
        slope, offset = (_ONE, _ZERO) if basis is None else basis.line
        return _CellVerdict(fits, basis, slope * factor, offset * factor, _notes(offering, basis))

    def _factor(self, offering: Offering) -> Decimal:
        """Returns by how much lying where it lies raises the rank."""
        return _ONE if not self._prefers or self._is_preferred(offering) else 1 + self._terms.preference_ratio

    def _answer(self, ranked: list[Ranked], refusals: list[Refusal]) -> Ranking:
        placements: tuple[Placement, ...] = ()
        if self._is_mixed:
            from hostler.planning.placement import gangs_of

            offerings = [item.offering for item in ranked]
            placements, reasons = gangs_of(self._request.node_count, offerings, self._terms, self._book, self._model)
            used = {share.offering.key for gang in placements for share in gang.shares}
            idle = [offering.key for offering in offerings if offering.key not in used]
            refusals += [Refusal(subject=key, reason=reasons[key]) for key in idle]
            ranked = [item for item in ranked if item.offering.key in used]
        refusals.sort(key=_SUBJECT)
        return Ranking(ranked=tuple(ranked), placements=placements, refusals=tuple(refusals), made_at=self._now)

    def _misfits(self, offering: Offering, cell: _CellVerdict, price: Decimal) -> list[str]:
        """Returns what speaks against it by what is free, by what may be spent, and by the length of the work."""
        words = list(self._book.reasons(offering, self._alone)) if self._checks_free else []
        if self._checks_spending and (over := self._book.spending_reason(price * self._alone)):
            words.append(over)
        if self._model is None or self._is_mixed:
            return words
        basis = self._model.basis(offering) if self._has_own_rates else cell.basis
        if basis is not None and basis.is_refused:
            words.append(HOPELESS)
        elif basis is not None and self._has_length:
            words += self._dear(basis, price)
        return words

    def _dear(self, basis: CostBasis, price: Decimal) -> list[str]:
        """Returns why the whole work on the offering costs too much or takes too long."""
        cost = basis.cost(price * basis.node_count)
        words, most, deadline = [], self._terms.max_total_usd, self._request.deadline_at
        if most is not None and cost.total_usd > most:
            words.append(f"the work costs {plain(cost.total_usd)} USD, the most is {plain(most)}")
        if deadline is not None and self._now + timedelta(hours=float(cost.wall_hours)) > deadline:
            until = f"{deadline.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            words.append(f"the work takes {plain(cost.wall_hours)} hours with losses and start-up, the deadline is {until}")
        return words

    def _ranked(self, item: Known, cell: _CellVerdict, price: Decimal) -> Ranked:
        """Returns the offering with all that may raise its rank or should be known before buying."""
        offering, basis, slope, offset = item.offering, cell.basis, cell.slope, cell.offset
        if self._has_own_rates and self._model is not None:
            basis = self._model.basis(offering)
            factor = self._factor(offering)
            slope, offset = basis.line[0] * factor, basis.line[1] * factor
        # A doubt is about the machine's price, not about disks or moving data.
        counted = price * DOUBT_RATIO if offering.doubts else price
        notes = _notes(offering, basis) if self._has_own_rates else cell.notes
        if offering.doubts:
            notes = (*(f"price doubted: {doubt}" for doubt in offering.doubts), *notes)
        if self._checks_quota and (unknown := self._book.unknown(offering, self._alone)):
            notes += (f"quota not checked: {', '.join(unknown)}",)
        stock_out = self._memory.against(offering, item.key) if self._remembers else None
        return Ranked(offering, counted * slope + offset, basis, stock_out, notes)

    def _is_preferred(self, offering: Offering) -> bool:
        places = (offering.cloud, offering.region, f"{offering.cloud}/{offering.region}")
        return any(place in self._prefers for place in places)


def _notes(offering: Offering, basis: CostBasis | None) -> tuple[str, ...]:
    """Returns what to know of every offering of this cloud with these losses."""
    notes = () if basis is None else basis.notes
    return notes if offering.cloud in EGRESS else (*notes, f"{offering.cloud} is not one of the clouds that Hostler buys from")


def one_per_key(offerings: Iterable[Offering]) -> list[Known]:
    """Returns one offering a key, sorted by key: the least attractive of those that share it."""
    chosen: dict[str, Offering] = {}
    for offering in offerings:
        key = offering.key
        rival = chosen.get(key)
        if rival is None or _attraction(offering) < _attraction(rival):
            chosen[key] = offering
    return [known_of(chosen[key]) for key in sorted(chosen)]


def _attraction(offering: Offering) -> tuple[bool, bool, Decimal, str]:
    """Orders offerings of one key, least attractive first; the text makes the order total, so that input order is nothing."""
    price = offering.price_usd_per_hour
    is_true = has_true_price(offering)
    return (offering.is_available, is_true, -price if is_true and price is not None else Decimal(0), repr(offering))


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
