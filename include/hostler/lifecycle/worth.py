"""Is it worth trying to buy now? What can be known without buying: clouds do not tell the stock of accelerators."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from hostler.cloud.driver import OfferingQuery
from hostler.cloud.errors import CloudError
from hostler.ledger.port import Caps, Spending, StockOut
from hostler.lifecycle.choice import covers
from hostler.lifecycle.fleet import Fleet
from hostler.model.offering import Offering
from hostler.model.request import NodeRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The answer. ``reasons``: why not, in words; or, when it is worth it, what would be bought first."""

    is_worth: bool
    reasons: tuple[str, ...]


async def worth_trying(fleet: Fleet, request: NodeRequest) -> Worth:
    """Asks the catalogs, the shared memory of stock-outs, the spending stop and the caps; buys nothing.

    Raises:
        LedgerUnavailableError: ask again later.
    """
    offerings, troubles = await _offerings(fleet, request)
    ledger = fleet.ledger
    now = await asyncio.to_thread(ledger.now)
    stock_outs = await asyncio.to_thread(ledger.stock_outs)
    plan = fleet.seams.make_plan(request, offerings, stock_outs, now)
    if not plan.offerings:
        refusals = tuple(f"{refusal.subject}: {refusal.reason}" for refusal in plan.refusals)
        return Worth(is_worth=False, reasons=(*troubles, *refusals) or ("nothing on offer fits the request",))
    if await asyncio.to_thread(ledger.is_spending_stopped):
        return Worth(is_worth=False, reasons=("spending is stopped; `hostler resume` ends that",))
    open_offerings = [offering for offering in plan.offerings if not _bars(offering, stock_outs)]
    if not open_offerings:
        return Worth(is_worth=False, reasons=(*troubles, *_bar_words(plan.offerings, stock_outs)))
    caps = fleet.settings.tenant_caps.get(request.tenant)
    if caps is None:
        return Worth(is_worth=False, reasons=(f"tenant {request.tenant!r} is not in fleet.yaml",))
    whole = await asyncio.to_thread(ledger.spending, None)
    own = await asyncio.to_thread(ledger.spending, request.tenant)
    over = [_over(offering, request.node_count, caps, whole, own) for offering in open_offerings]
    for offering, words in zip(open_offerings, over, strict=True):
        if not words:
            return Worth(
                is_worth=True, reasons=(f"{request.node_count} x {offering.key} at {offering.price_usd_per_hour} USD/h",)
            )
    return Worth(is_worth=False, reasons=tuple(dict.fromkeys(over)))


async def _offerings(fleet: Fleet, request: NodeRequest) -> tuple[tuple[Offering, ...], tuple[str, ...]]:
    """Returns what all clouds offer, and in words which clouds could not be asked."""
    query = OfferingQuery(
        accelerator=request.accelerator,
        accelerators_per_node=request.accelerators_per_node,
        capacity_types=request.capacity_types,
        regions=request.regions,
    )
    names = sorted(name for name in fleet.drivers if not request.clouds or name in request.clouds)
    calls = [asyncio.to_thread(fleet.drivers[name].list_offerings, query) for name in names]
    found: list[Offering] = []
    troubles: list[str] = []
    for name, answer in zip(names, await asyncio.gather(*calls, return_exceptions=True), strict=True):
        if isinstance(answer, CloudError):
            troubles.append(f"{name}: {answer}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.extend(answer)
    return tuple(found), tuple(troubles)


def _bars(offering: Offering, stock_outs: Sequence[StockOut]) -> list[StockOut]:
    return [memory for memory in stock_outs if covers(memory.subject, offering)]


def _bar_words(offerings: Sequence[Offering], stock_outs: Sequence[StockOut]) -> tuple[str, ...]:
    bars = {bar.subject: bar for offering in offerings for bar in _bars(offering, stock_outs)}
    return tuple(f"{bar.subject}: {bar.reason}, not before {bar.until:%H:%M:%S} UTC" for bar in bars.values())


def _over(offering: Offering, node_count: int, caps: Caps, whole: Spending, own: Spending) -> str:
    """Returns which cap the gang would pass, in words; empty when none."""
    price = (offering.price_usd_per_hour or Decimal(0)) * node_count
    checks = (
        ("limits.usd_per_hour", caps.usd_per_hour, whole.usd_per_hour, price),
        ("limits.nodes", caps.nodes, whole.nodes, node_count),
        ("the tenant's usd_per_hour", caps.tenant_usd_per_hour, own.usd_per_hour, price),
        ("the tenant's nodes", caps.tenant_nodes, own.nodes, node_count),
    )
    for name, cap, used, wanted in checks:
        if cap is not None and used + wanted > cap:
            return f"{name} is {cap}: {used} in use, {wanted} more are needed"
    return ""
