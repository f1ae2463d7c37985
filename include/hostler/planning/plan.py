"""Which offerings to try, best first, and why the others are out. Pure: same input, same bytes, whatever the input's order."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from hostler.model.offering import Offering, PlacementPlan
from hostler.model.request import NodeRequest
from hostler.planning.filters import has_true_price
from hostler.planning.rank import offerings_of, rank_offerings
from hostler.planning.stock import stock_out_of
from hostler.planning.terms import PlanTerms

if TYPE_CHECKING:  # see planning.stock
    from hostler.ledger.port import StockOut

__all__ = ["has_true_price", "make_plan", "stock_out_of"]


def make_plan(
    request: NodeRequest,
    offerings: Iterable[Offering],
    stock_outs: Iterable["StockOut"],
    now: datetime,
    terms: PlanTerms | None = None,
) -> PlacementPlan:
    """Filters and ranks offerings for one request.

    Offerings that the stock-out memory advises against stay in the plan but come after all others, the one that is worth trying
    soonest first: a plan is kept with the lease and must not forget a zone because it was empty once. A price that is missing,
    zero, negative, infinite or not a number is no price, so it never wins: it is refused.

    A gang in one zone needs nothing special here: offerings are per zone, so the first one names the zone of the whole gang.

    Args:
        offerings, stock_outs, now: as for ``rank_offerings``.
        terms: None ranks by the list price of a node, whatever its capacity type, and checks no quota, reservation or cap.

    Returns:
        The plan. Refusals are sorted by subject; one for each offering that is out, and one for each asked cloud or region
        that offers nothing at all.

    Raises:
        ValueError: the terms contradict the request; names the field.
    """
    ranking = rank_offerings(request, offerings, stock_outs, now, terms or PlanTerms())
    return PlacementPlan(offerings=offerings_of(ranking.ranked), refusals=ranking.refusals, made_at=ranking.made_at)
