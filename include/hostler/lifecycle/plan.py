"""Phases ``plan`` and ``acquire``: what can be bought, in which order, and the grant."""

import asyncio
from dataclasses import replace
from decimal import Decimal

from hostler.cloud.driver import CloudDriver, OfferingQuery
from hostler.cloud.errors import CloudAuthError, CloudConfigError, CloudError
from hostler.ledger.port import Caps
from hostler.lifecycle.charge import Charge
from hostler.lifecycle.events import words_of
from hostler.lifecycle.limits import too_dear
from hostler.lifecycle.step import Effect
from hostler.model.enums import LeaseState
from hostler.model.offering import Offering, PlacementPlan, Refusal

FATAL = (CloudAuthError, CloudConfigError)


async def make_plan(charge: Charge, effect: Effect) -> None:
    """Effect PLAN: asks every allowed cloud, ranks what it offers, keeps the plan with its refusals."""
    request = charge.lease.request
    names = sorted(name for name in charge.fleet.drivers if not request.clouds or name in request.clouds)
    answers = await asyncio.gather(*(_ask(charge, name) for name in names), return_exceptions=True)
    offerings: list[Offering] = []
    errors: dict[str, CloudError] = {}
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, CloudError):
            errors[name] = answer
        elif isinstance(answer, BaseException):
            raise answer
        else:
            offerings += answer
    if errors and not offerings:
        _no_answer(charge, effect, errors)
        return
    priced = tuple(charge.fleet.seams.with_prices(tuple(offerings)))
    # Stock-outs are left to the choice of each moment: the plan outlives them.
    plan = charge.fleet.seams.make_plan(request, priced, (), charge.now())
    plan = _affordable(charge, plan, errors)
    if not plan.offerings:
        charge.memory.fatal = f"nothing fits: {_words(plan)}"
    why = f"{len(plan.offerings)} offerings, {len(plan.refusals)} refused"
    first = plan.offerings[0].key if plan.offerings else None
    await charge.write("plan", [replace(charge.lease, plan=plan)], [charge.event("lease.planned", why, first=first)])
    charge.memory.clear(effect.key)


async def _ask(charge: Charge, name: str) -> tuple[Offering, ...]:
    driver, request = charge.driver(name), charge.lease.request
    regions = tuple(region for region in driver.regions if not request.regions or region in request.regions)
    if not regions:
        return ()
    query = OfferingQuery(
        accelerator=request.accelerator,
        accelerators_per_node=request.accelerators_per_node,
        capacity_types=request.capacity_types,
        regions=regions,
    )
    return await charge.call("offerings", lambda: _list_offerings(driver, query))


def _list_offerings(driver: CloudDriver, query: OfferingQuery) -> tuple[Offering, ...]:
    return driver.list_offerings(query)


def _no_answer(charge: Charge, effect: Effect, errors: dict[str, CloudError]) -> None:
    words = "; ".join(f"{name}: {words_of(error)}" for name, error in sorted(errors.items()))
    if all(isinstance(error, FATAL) for error in errors.values()):
        charge.memory.fatal = f"plan: {words}"
        return
    charge.memory.hold(effect.key, charge.now(), charge.memory.backoff_s(effect.key, 5.0, 120.0), f"plan: {words}")


def _affordable(charge: Charge, plan: PlacementPlan, errors: dict[str, CloudError]) -> PlacementPlan:
    """Takes out what no cap will ever allow, what has no price, and names the clouds that did not answer."""
    refusals = [*plan.refusals, *(Refusal(subject=name, reason=words_of(error)) for name, error in sorted(errors.items()))]
    kept = []
    for offering in plan.offerings:
        reason = _why_not(charge, offering)
        if reason is None:
            kept.append(offering)
        else:
            refusals.append(Refusal(subject=offering.key, reason=reason))
    return replace(plan, offerings=tuple(kept), refusals=tuple(refusals))


def _why_not(charge: Charge, offering: Offering) -> str | None:
    price, request, caps = offering.price_usd_per_hour, charge.lease.request, charge.memory.caps
    if price is None:
        return "no price is known: it is never bought"
    gang = price * request.node_count
    cap = lowest_usd_cap(caps)
    if cap is not None and gang > cap:
        return f"{request.node_count} nodes cost {gang} USD per hour, the cap is {cap}"
    if too_dear(price, request.node_count, request.max_cost_usd):
        return (
            f"{request.node_count} nodes cost {gang} USD per hour: max_cost_usd {request.max_cost_usd} is spent within a minute"
        )
    return None


def lowest_usd_cap(caps: Caps) -> Decimal | None:
    """Returns the tighter of the deployment's and the tenant's cap in USD per hour; None when there is none."""
    return min((cap for cap in (caps.usd_per_hour, caps.tenant_usd_per_hour) if cap is not None), default=None)


def _words(plan: PlacementPlan) -> str:
    reasons: dict[str, int] = {}
    for refusal in plan.refusals:
        reasons[refusal.reason] = reasons.get(refusal.reason, 0) + 1
    listed = "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:5])
    return listed or "no cloud has an offering for this request"


async def grant(charge: Charge, _effect: Effect) -> None:
    """Effect GRANT: the lease may buy from now on."""
    event = charge.event("lease.granted", "the plan holds and purchases are allowed")
    await charge.write("granted", [replace(charge.lease, state=LeaseState.GRANTED)], [event])
