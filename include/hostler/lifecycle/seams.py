"""The parts that the lifecycle calls and other packages own, bound late so that each can be replaced in a test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from hostler.ledger.port import StockOut
from hostler.model.health import HealthReport
from hostler.model.lease import Backup, Job, Lease, Node
from hostler.model.offering import Offering, PlacementPlan
from hostler.model.request import NodeRequest
from hostler.reach.port import JobOrder, ShippedObject
from hostler.vault.port import KeyProvider, ObjectStore

Problems = Sequence[tuple[str, str]]
"""(field, message) pairs; empty when all is well."""


class MakePlan(Protocol):
    """Ranks offerings; pure."""

    def __call__(
        self, request: NodeRequest, offerings: Sequence[Offering], stock_outs: Sequence[StockOut], now: datetime
    ) -> PlacementPlan:
        """Returns the offerings to try in order, and why the others are refused."""
        ...


class Seal(Protocol):
    """Seals what the nodes shipped under one manifest and reads all of it back."""

    def __call__(
        self, store: ObjectStore, lease: Lease, objects: Sequence[ShippedObject], sealed_at: datetime, *, keys: KeyProvider
    ) -> Backup:
        """Returns the backup; ``is_verified`` only after every object was read back and its hash checked.

        Raises:
            Exception: nothing was sealed; try again later.
        """
        ...


def _as_listed(offerings: Sequence[Offering]) -> Sequence[Offering]:
    return offerings


def _make_plan(
    request: NodeRequest, offerings: Sequence[Offering], stock_outs: Sequence[StockOut], now: datetime
) -> PlacementPlan:
    from hostler.planning.plan import make_plan

    return make_plan(request, offerings, stock_outs, now)


class Judge(Protocol):
    """Judges a probe document in the light of what is remembered of the node; pure."""

    def __call__(
        self, document: Mapping[str, Any], *, accelerator: str, accelerator_count: int, now: datetime, memory: str | None
    ) -> HealthReport:
        """Returns verdict, rung, reasons, evidence, and the memory for the next time."""
        ...


def _judge(
    document: Mapping[str, Any], *, accelerator: str, accelerator_count: int, now: datetime, memory: str | None
) -> HealthReport:
    from hostler.health.verdict import judge

    return judge(document, accelerator=accelerator, accelerator_count=accelerator_count, now=now, memory=memory)


def _check_workload(request: NodeRequest) -> Problems:
    from hostler.recipes.workloads import check

    return check(request)


def _orders_for(lease: Lease, job: Job, nodes: Sequence[Node]) -> Sequence[JobOrder]:
    from hostler.recipes.workloads import orders_for

    return orders_for(lease, job, tuple(nodes))


def _setup_options(lease: Lease) -> Mapping[str, str]:
    from hostler.recipes.workloads import setup_options

    return setup_options(lease)


def _seal(
    store: ObjectStore, lease: Lease, objects: Sequence[ShippedObject], sealed_at: datetime, *, keys: KeyProvider
) -> Backup:
    from hostler.recipes.backup import seal

    return seal(store, lease, objects, sealed_at, keys=keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """Defaults are the real parts.

    Attributes:
        with_prices: fills accepted prices into what the drivers list.
        orders_for: orders in rank order.
    """

    with_prices: Callable[[Sequence[Offering]], Sequence[Offering]] = _as_listed
    make_plan: MakePlan = _make_plan
    judge: Judge = _judge
    check_workload: Callable[[NodeRequest], Problems] = _check_workload
    orders_for: Callable[[Lease, Job, Sequence[Node]], Sequence[JobOrder]] = _orders_for
    setup_options: Callable[[Lease], Mapping[str, str]] = _setup_options
    seal: Seal = _seal
