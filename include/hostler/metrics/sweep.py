"""What an account costs now, by whose it is, held against the ledger. Pure.

Everything is priced: machines that run, disks and addresses whether their machine runs or not. A thing of no known price is
counted apart and never free. ``unexplained_usd_per_month`` is what the cloud shows and the ledger does not answer for, or the
other way round: 0.00 when both agree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final

from hostler.catalog.storage import HOURS_PER_MONTH
from hostler.cloud.driver import MachineState
from hostler.cloud.inventory import Thing, ThingKind
from hostler.cloud.tags import INTENT, LEASE, is_foreign
from hostler.metrics.cost import accrued_usd, is_billing, rate_usd_per_hour
from hostler.model.enums import LeaseState
from hostler.model.lease import LeaseView, Node

CENT: Final = Decimal("0.01")
_NO: Final = Decimal(0)
_COSTS: Final = frozenset({MachineState.RUNNING, MachineState.STOPPING, MachineState.TERMINATING})
"""A machine costs from running until the cloud says stopped or terminated; one that is pending does not yet."""

_IS_OR_WILL: Final = _COSTS | {MachineState.PENDING}
LAG_S: Final = 120
"""A node that is younger may be missing from the inventory."""


class Owner(StrEnum):
    """Whose a thing is. ``orphan``: it carries our tags, and no open lease answers for it. ``foreign``: never touched."""

    OURS = "ours"
    ORPHAN = "orphan"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLine:
    """One thing. ``usd_per_month``: None when no price is known. ``why``: whose it is, in words; ``lease_id`` by its tags."""

    thing: Thing
    owner: Owner
    usd_per_month: Decimal | None
    why: str
    lease_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseCost:
    """What a lease's machines have cost so far; launches that failed cost 0."""

    lease_id: str
    tenant: str
    state: LeaseState
    cost_usd: Decimal
    usd_per_hour: Decimal
    launches: int
    failed_launches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """Ours, orphans and foreign in one list, the dearest first, and what the ledger says beside it.

    Attributes:
        unexplained: one sentence for each difference between ledger and inventory. unpriced_count: things of no known price.
    """

    at: datetime
    lines: tuple[SweepLine, ...]
    leases: tuple[LeaseCost, ...]
    unexplained_usd_per_month: Decimal
    unexplained: tuple[str, ...]
    unpriced_count: int

    def total(self, owner: Owner) -> Decimal:
        """Returns USD a month of all things of an owner that have a price."""
        return sum((one.usd_per_month or _NO for one in self.lines if one.owner is owner), _NO).quantize(CENT)

    def of(self, owner: Owner) -> tuple[SweepLine, ...]:
        """Returns the lines of an owner."""
        return tuple(one for one in self.lines if one.owner is owner)


def report_costs(
    things: Sequence[Thing],
    views: Iterable[LeaseView],
    *,
    now: datetime,
    deployment: str,
    prices: Mapping[str, Decimal] | None = None,
) -> CostReport:
    """Returns the report.

    Args:
        things: the whole inventory of every region. views: every lease that is open, and those to be told of.
        prices: USD an hour by ``Thing.key``, for machines that neither ledger nor driver has a price for.
    """
    ledger = _Ledger(views)
    machines = {one.thing_id: one for one in things if one.kind is ThingKind.MACHINE}
    lines = [_line(one, machines, ledger, deployment, prices or {}) for one in things]
    lines.sort(key=lambda one: (one.owner, -(one.usd_per_month or _NO), one.thing.key))
    gaps = [*_orphan_gaps(lines), *_gaps(lines, ledger, now)]
    return CostReport(
        at=now,
        lines=tuple(lines),
        leases=tuple(_lease_cost(view, now) for view in ledger.views),
        unexplained_usd_per_month=sum((usd for usd, _ in gaps), _NO).quantize(CENT),
        unexplained=tuple(words for _, words in gaps),
        unpriced_count=sum(1 for one in lines if one.usd_per_month is None),
    )


class _Ledger:
    """The leases, by what is asked of them."""

    def __init__(self, views: Iterable[LeaseView]) -> None:
        self.views = tuple(views)
        self.by_id = {view.lease.lease_id: view for view in self.views}
        self.nodes: dict[str, Node] = {node.provider_id: node for view in self.views for node in view.nodes}

    def answers_for(self, tags: Mapping[str, str]) -> str | None:
        """Returns why no lease answers for a thing with our tags, in words; None when one does."""
        view = self.by_id.get(tags.get(LEASE, ""))
        if view is None:
            return "its lease is not in the ledger"
        if tags.get(INTENT) not in {intent.intent_id for intent in view.intents}:
            return "its lease knows no such intent"
        return "its lease is released" if view.lease.state is LeaseState.RELEASED else None


def _line(
    thing: Thing, machines: Mapping[str, Thing], ledger: _Ledger, deployment: str, prices: Mapping[str, Decimal]
) -> SweepLine:
    # What hangs on a machine is its machine's: disks of an image carry no tags of ours.
    holder = machines.get(thing.attached_to or "", thing)
    owner, why = _owner(holder, ledger, deployment)
    if thing.attached_to and holder is thing and owner is Owner.ORPHAN:
        owner, why = Owner.OURS, f"attached to {thing.attached_to}, which is not in the inventory"
    return SweepLine(
        thing=thing,
        owner=owner,
        usd_per_month=_usd_per_month(thing, ledger, prices),
        why=why if holder is thing else f"attached to {holder.thing_id}: {why}",
        lease_id=holder.tags.get(LEASE) if owner is not Owner.FOREIGN else None,
    )


def _owner(thing: Thing, ledger: _Ledger, deployment: str) -> tuple[Owner, str]:
    if is_foreign(thing.tags, deployment):
        return Owner.FOREIGN, "not ours: never touched"
    missing = ledger.answers_for(thing.tags)
    return (Owner.ORPHAN, missing) if missing else (Owner.OURS, "its lease answers for it")


def _usd_per_month(thing: Thing, ledger: _Ledger, prices: Mapping[str, Decimal]) -> Decimal | None:
    if thing.kind is not ThingKind.MACHINE:
        return thing.usd_per_month
    if thing.state not in _COSTS:
        return _NO
    hourly = _usd_per_hour(thing, ledger, prices)
    return None if hourly is None else hourly * HOURS_PER_MONTH


def _usd_per_hour(thing: Thing, ledger: _Ledger, prices: Mapping[str, Decimal]) -> Decimal | None:
    """What we bought it for; else what its driver, or a price list, says."""
    node = ledger.nodes.get(thing.thing_id)
    bought = node.offering.price_usd_per_hour if node is not None else None
    return bought or thing.usd_per_hour or prices.get(thing.key)


def _orphan_gaps(lines: Sequence[SweepLine]) -> list[tuple[Decimal, str]]:
    """What our tags say is ours and no lease answers for."""
    return [
        (one.usd_per_month or _NO, f"{one.thing.kind} {one.thing.key}: {one.why}")
        for one in lines
        if one.owner is Owner.ORPHAN and one.usd_per_month != 0
    ]


def _gaps(lines: Sequence[SweepLine], ledger: _Ledger, now: datetime) -> list[tuple[Decimal, str]]:
    """Machines that cost by one side and not by the other."""
    shown = {one.thing.thing_id: one for one in lines if one.thing.kind is ThingKind.MACHINE}
    found = []
    for line in shown.values():
        node = ledger.nodes.get(line.thing.thing_id)
        if line.owner is Owner.OURS and line.thing.state in _IS_OR_WILL and node is not None and not is_billing(node):
            words = f"machine {line.thing.key}: {line.thing.state} by the cloud, {node.state} by the ledger"
            found.append((_monthly(node), words))
    for node in ledger.nodes.values():
        seen = shown.get(node.provider_id)
        is_young = now - node.launched_at < timedelta(seconds=LAG_S)
        if is_billing(node) and not is_young and (seen is None or seen.thing.state not in _IS_OR_WILL):
            words = (
                f"node {node.node_name}: {node.state} by the ledger, {seen.thing.state if seen else 'not there'} by the cloud"
            )
            found.append((_monthly(node), words))
    return found


def _monthly(node: Node) -> Decimal:
    return (node.offering.price_usd_per_hour or _NO) * HOURS_PER_MONTH


def _lease_cost(view: LeaseView, now: datetime) -> LeaseCost:
    machines = {node.intent_id for node in view.nodes if not node.has_failed_start}
    return LeaseCost(
        lease_id=view.lease.lease_id,
        tenant=view.lease.request.tenant,
        state=view.lease.state,
        cost_usd=accrued_usd(view, now),
        usd_per_hour=rate_usd_per_hour(view),
        launches=len(view.intents),
        failed_launches=sum(1 for intent in view.intents if intent.intent_id not in machines),
    )


def lines_of(report: CostReport) -> list[str]:
    """Returns the report as lines for a log or a terminal."""
    text = []
    for owner in Owner:
        mine = report.of(owner)
        text.append(f"{owner}: {len(mine)} things, {report.total(owner)} USD a month")
        text += [f"  {_words(one)}" for one in mine]
    text += [
        f"lease {one.lease_id} ({one.tenant}, {one.state}): {one.cost_usd.quantize(CENT)} USD so far, "
        f"{one.usd_per_hour} USD an hour, {one.launches} launches, {one.failed_launches} of them without a machine"
        for one in report.leases
    ]
    text += [f"no known price: {report.unpriced_count}", f"unexplained: {report.unexplained_usd_per_month} USD a month"]
    return [*text, *(f"  {words}" for words in report.unexplained)]


def _words(one: SweepLine) -> str:
    price = "no known price" if one.usd_per_month is None else f"{one.usd_per_month.quantize(CENT)} USD a month"
    state = f" {one.thing.state}" if one.thing.state else ("" if one.thing.attached_to else " unattached")
    return f"{one.thing.kind} {one.thing.key} {one.thing.words}{state}: {price}; {one.why}"
