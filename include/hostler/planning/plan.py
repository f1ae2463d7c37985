"""Which offerings to try, best first, and why the others are out. Pure: same input, same bytes, whatever the input's order."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from hostler.ledger.port import StockOut
from hostler.model.offering import Offering, PlacementPlan, Refusal
from hostler.model.request import NodeRequest


def make_plan(
    request: NodeRequest, offerings: Iterable[Offering], stock_outs: Iterable[StockOut], now: datetime
) -> PlacementPlan:
    """Filters and ranks offerings for one request.

    The rule of rank: cheapest price of a node first among everything asked for, whatever its capacity type; ties by the
    offering's key. Offerings that the stock-out memory advises against stay in the plan but come after all others, the one
    that is worth trying soonest first: a plan is kept with the lease and must not forget a zone because it was empty once.
    A price that is missing, zero, negative, infinite or not a number is no price, so it never wins: it is refused.

    A gang in one zone needs nothing special here: offerings are per zone, so the first one names the zone of the whole gang.

    Args:
        offerings: in any order. Of several with one key the least attractive counts (unavailable, then no price, then dearest).
        stock_outs: in any order; those whose ``until`` is not after ``now`` count for nothing.
        now: aware UTC; becomes ``made_at``.

    Returns:
        The plan. Refusals are sorted by subject; one for each offering that is out, and one for each asked cloud or region
        that offers nothing at all.
    """
    known = _one_per_key(offerings)
    memory = tuple(stock_outs)
    reasons = {offering.key: _reasons_against(request, offering) for offering in known}
    fitting = [offering for offering in known if not reasons[offering.key]]
    refused = [Refusal(subject=key, reason="; ".join(words)) for key, words in reasons.items() if words]
    return PlacementPlan(
        offerings=tuple(sorted(fitting, key=lambda offering: _rank(offering, memory, now))),
        refusals=tuple(sorted([*refused, *_nothing_offered(request, known)], key=lambda item: (item.subject, item.reason))),
        made_at=now,
    )


def stock_out_of(offering: Offering, stock_outs: Iterable[StockOut], now: datetime) -> StockOut | None:
    """Returns the memory in force that speaks against the offering, the longest-lasting of several; None when there is none.

    A memory's subject is the offering's key, its ``cloud/region``, or its ``cloud/region//instance type``.
    """
    where = f"{offering.cloud}/{offering.region}"
    subjects = {offering.key, where, f"{where}//{offering.instance_type}"}
    in_force = [memory for memory in stock_outs if memory.subject in subjects and memory.until > now]
    return max(in_force, key=lambda memory: (memory.until, memory.subject), default=None)


def has_true_price(offering: Offering) -> bool:
    """True when the price is a finite number above zero; everything else means that no price is known."""
    price = offering.price_usd_per_hour
    return price is not None and price.is_finite() and price > 0


def _one_per_key(offerings: Iterable[Offering]) -> list[Offering]:
    """Returns one offering a key, sorted by key: the least attractive of those that share it."""
    chosen: dict[str, Offering] = {}
    for offering in offerings:
        rival = chosen.get(offering.key)
        if rival is None or _attraction(offering) < _attraction(rival):
            chosen[offering.key] = offering
    return [chosen[key] for key in sorted(chosen)]


def _attraction(offering: Offering) -> tuple[bool, bool, Decimal, str]:
    """Orders offerings of one key, least attractive first; the text makes the order total, so that input order is nothing."""
    price = offering.price_usd_per_hour
    is_true = has_true_price(offering)
    return (offering.is_available, is_true, -price if is_true and price is not None else Decimal(0), repr(offering))


def _rank(offering: Offering, stock_outs: Sequence[StockOut], now: datetime) -> tuple[datetime, Decimal, str]:
    """Returns the sort key: when worth trying (``now`` unless in memory), price, key."""
    memory = stock_out_of(offering, stock_outs, now)
    price = offering.price_usd_per_hour
    return (memory.until if memory else now, price if price is not None else Decimal(0), offering.key)


def _reasons_against(request: NodeRequest, offering: Offering) -> list[str]:
    """Returns why the offering does not fit, in words; empty when it does."""
    reasons = [*_mismatches(request, offering), *_price_faults(request, offering)]
    if not offering.is_available:
        reasons.append(f"unavailable: {offering.unavailable_reason or 'the cloud does not offer it now'}")
    return reasons


def _mismatches(request: NodeRequest, offering: Offering) -> list[str]:
    """Returns what the offering is or where it lies that the request did not ask for."""
    reasons = []
    if (offering.accelerator, offering.accelerator_count) != (request.accelerator, request.accelerators_per_node):
        wanted = f"{request.accelerators_per_node} x {request.accelerator}"
        reasons.append(f"has {offering.accelerator_count} x {offering.accelerator}, asked for {wanted}")
    if request.clouds and offering.cloud not in request.clouds:
        reasons.append(f"cloud {offering.cloud} not asked for (clouds: {', '.join(request.clouds)})")
    if request.regions and offering.region not in request.regions:
        reasons.append(f"region {offering.region} not asked for (regions: {', '.join(request.regions)})")
    if offering.capacity_type not in request.capacity_types:
        reasons.append(
            f"capacity type {offering.capacity_type} not asked for (capacity_types: {', '.join(request.capacity_types)})"
        )
    return reasons


def _price_faults(request: NodeRequest, offering: Offering) -> list[str]:
    """Returns what is wrong with the price."""
    price, highest = offering.price_usd_per_hour, request.max_price_usd_per_hour
    if price is None:
        return ["no price is known"]
    if not has_true_price(offering):
        return [f"price {price} USD per hour is not a price"]
    if highest is not None and price > highest:
        return [f"price {price} USD per hour is above max_price_usd_per_hour {highest}"]
    return []


def _nothing_offered(request: NodeRequest, known: Sequence[Offering]) -> list[Refusal]:
    """Returns a refusal for each part of the request that no offering was found for."""
    if not known:
        what = f"{request.accelerators_per_node} x {request.accelerator}"
        return [Refusal(subject="accelerator", reason=f"no cloud offers a node with {what} here")]
    clouds = set(request.clouds) - {offering.cloud for offering in known}
    regions = set(request.regions) - {offering.region for offering in known}
    return [
        *(Refusal(subject="clouds", reason=f"{cloud} offers nothing of this kind") for cloud in clouds),
        *(Refusal(subject="regions", reason=f"nothing of this kind is offered in {region}") for region in regions),
    ]
