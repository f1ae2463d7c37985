"""Is it worth trying to buy now? What can be known without buying: clouds do not tell the stock of accelerators."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    """What the ledger says, as far as it does not depend on who asks."""

    now: datetime
    stock_outs: tuple[StockOut, ...]
    is_stopped: bool
    spending: Spending


async def worth_trying(fleet: Fleet, request: NodeRequest, *, max_age_s: float = 0.0) -> Worth:
    """Asks the catalogs, the shared memory of stock-outs, the spending stop and the caps; buys nothing.

    Args:
        max_age_s: how old what is known may be. All waiters of a process share it: a thousand make no more calls than one.

    Raises:
        LedgerUnavailableError: ask again later.
    """
    offerings, troubles = await _offerings(fleet, request, max_age_s)
    records = await fleet.board.ask("ledger", lambda: _records(fleet), max_age_s=max_age_s)
    plan = fleet.seams.make_plan(request, offerings, records.stock_outs, records.now)
    if not plan.offerings:
        refusals = tuple(f"{refusal.subject}: {refusal.reason}" for refusal in plan.refusals)
        return Worth(is_worth=False, reasons=(*troubles, *refusals) or ("nothing on offer fits the request",))
    if records.is_stopped:
        return Worth(is_worth=False, reasons=("spending is stopped; `hostler resume` ends that",))
    open_offerings = [offering for offering in plan.offerings if not _bars(offering, records.stock_outs)]
    if not open_offerings:
        return Worth(is_worth=False, reasons=(*troubles, *_bar_words(plan.offerings, records.stock_outs)))
    caps = fleet.settings.tenant_caps.get(request.tenant)
    if caps is None:
        return Worth(is_worth=False, reasons=(f"tenant {request.tenant!r} is not in fleet.yaml",))
    own = await fleet.board.ask(
        ("spending", request.tenant), lambda: asyncio.to_thread(fleet.ledger.spending, request.tenant), max_age_s=max_age_s
    )
    over = [_over(offering, request.node_count, caps, records.spending, own) for offering in open_offerings]
    for offering, words in zip(open_offerings, over, strict=True):
        if not words:
            return Worth(
                is_worth=True, reasons=(f"{request.node_count} x {offering.key} at {offering.price_usd_per_hour} USD/h",)
            )
    return Worth(is_worth=False, reasons=tuple(dict.fromkeys(over)))


async def _records(fleet: Fleet) -> _Records:
    def read() -> _Records:
        ledger = fleet.ledger
        return _Records(
            now=ledger.now(),
            stock_outs=tuple(ledger.stock_outs()),
            is_stopped=ledger.is_spending_stopped(),
            spending=ledger.spending(None),
        )

    return await asyncio.to_thread(read)


async def _offerings(fleet: Fleet, request: NodeRequest, max_age_s: float) -> tuple[tuple[Offering, ...], tuple[str, ...]]:
    """Returns what all clouds offer, and in words which clouds could not be asked."""
    query = OfferingQuery(
        accelerator=request.accelerator,
        accelerators_per_node=request.accelerators_per_node,
        capacity_types=request.capacity_types,
        regions=request.regions,
    )
    names = sorted(name for name in fleet.drivers if not request.clouds or name in request.clouds)

    async def listed(name: str) -> tuple[Offering, ...]:
        return await asyncio.to_thread(fleet.drivers[name].list_offerings, query)

    calls = [fleet.board.ask((name, query), partial(listed, name), max_age_s=max_age_s) for name in names]
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
