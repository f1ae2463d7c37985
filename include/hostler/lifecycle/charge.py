"""Being in charge of a lease: the fence, the view, and the only ways to write a row, call a cloud or ask a node."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from hostler.cloud.driver import CloudDriver
from hostler.cloud.errors import CloudConfigError
from hostler.lifecycle.events import make_event
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.step import Effect, Memory
from hostler.model.lease import Event, Fence, Intent, Lease, LeaseView, Node, Record
from hostler.reach.port import ReachError

T = TypeVar("T")

ASK_TIMEOUT_S = 120.0
"""Longest that one question to one node may take; the transport's own time-outs are shorter."""


@dataclass(slots=True, kw_only=True)
class Charge:
    """One driver of one lease.

    Every effect and every write has the fleet's ``crash`` hook before and after it, so that the simulator can end the process
    at each of these moments.
    """

    fleet: Fleet
    fence: Fence
    view: LeaseView
    memory: Memory
    clock: "LedgerClock" = field(init=False)

    def __post_init__(self) -> None:
        """The clock is set once the ledger was asked: ``read_clock`` or ``clock.set``."""
        self.clock = LedgerClock()

    @property
    def lease(self) -> Lease:
        """The lease as read at the beginning of this round."""
        return self.view.lease

    def now(self) -> datetime:
        """Returns the ledger's clock as far as it is known without asking: no call, so it holds up no loop."""
        return self.clock.now()

    async def read_clock(self) -> datetime:
        """Asks the ledger for its clock, beside the loop. For what must not rest on this machine's own count of seconds."""
        now = await self.fleet.offload(self.fleet.ledger.now)
        self.clock.set(now)
        return now

    def driver(self, cloud: str) -> CloudDriver:
        """Returns the cloud's driver. Raises CloudConfigError when fleet.yaml does not name the cloud any more."""
        if cloud not in self.fleet.drivers:
            raise CloudConfigError(f"cloud {cloud!r} is not in fleet.yaml; there: {', '.join(sorted(self.fleet.drivers))}")
        return self.fleet.drivers[cloud]

    def node(self, effect: Effect) -> Node:
        """Returns the node that the effect is about, as read at the beginning of this round."""
        return next(node for node in self.view.nodes if node.node_name == effect.node_name)

    def intent(self, slot_index: int | None) -> Intent:
        """Returns the newest intent of the slot."""
        return [intent for intent in self.view.intents if intent.slot_index == slot_index][-1]

    def event(self, what: str, why: str, *, slot_index: int | None = None, **evidence: object) -> Event:
        """Returns an event of this lease by this driver."""
        return make_event(self.fence.lease_id, self.fence.holder, what, why, slot_index=slot_index, **evidence)

    async def write(self, label: str, records: Sequence[Record], events: Sequence[Event]) -> tuple[Record, ...]:
        """Writes rows and their events under the fence. Raises what ``Ledger.write`` raises."""
        self.fleet.crash(f"write:{label}:before")
        stored = await self.fleet.offload(lambda: self.fleet.ledger.write(self.fence.lease_id, records, events, self.fence))
        self.fleet.crash(f"write:{label}:after")
        return stored

    async def write_node(self, label: str, node: Node, *events: Event) -> Node:
        """Writes one node and returns the row as stored."""
        stored = (await self.write(label, [node], events))[0]
        assert isinstance(stored, Node)  # noqa: S101 - the ledger returns what it was given
        return stored

    async def call(self, label: str, work: Callable[[], T]) -> T:
        """Calls a cloud, a key service or a store in a thread. Raises what ``work`` raises."""
        self.fleet.crash(f"{label}:before")
        try:
            return await self.fleet.offload(work)
        finally:
            self.fleet.crash(f"{label}:after")

    async def ask(self, label: str, question: Callable[[], Awaitable[T]], timeout_s: float = ASK_TIMEOUT_S) -> T:
        """Asks a node. Raises ReachError, also when the answer takes too long."""
        self.fleet.crash(f"{label}:before")
        try:
            async with asyncio.timeout(timeout_s):
                return await question()
        except TimeoutError as error:
            raise ReachError(f"no answer within {timeout_s:.0f} s") from error
        finally:
            self.fleet.crash(f"{label}:after")


class LedgerClock:
    """The ledger's clock between two questions: its last answer and the seconds that the loop's monotonic clock counted since.

    Each round of ``converge`` asks anew, so that it is never further off than one round may drift.
    """

    def __init__(self) -> None:
        self._answer: tuple[datetime, float] | None = None

    def set(self, now: datetime) -> None:
        """Notes an answer that has just come."""
        self._answer = now, asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """Returns what the ledger would answer now. Raises RuntimeError before the first ``set``: a defect of the caller."""
        if self._answer is None:
            raise RuntimeError("the ledger has not been asked for its clock yet")
        then, counted_s = self._answer
        return then + timedelta(seconds=asyncio.get_running_loop().time() - counted_s)


async def all_of(works: Sequence[Awaitable[None]], *, at_once: int = 64) -> None:
    """Runs all to their end, at most ``at_once`` together, then raises the gravest error: one that ends the process first."""
    if len(works) == 1:
        await works[0]
        return
    gate = asyncio.Semaphore(at_once)

    async def _one(work: Awaitable[None]) -> None:
        async with gate:
            await work

    results = await asyncio.gather(*(_one(work) for work in works), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    errors.sort(key=lambda error: isinstance(error, Exception))
    if errors:
        raise errors[0]
