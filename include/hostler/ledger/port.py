"""The ledger: the truth about leases. Every change and its events are one transaction.

Two implementations pass one suite (``tests/stores``): ``stores.memory`` for the simulator and ``stores.postgres``.
Calls are synchronous and thread-safe, and safe across processes in the PostgreSQL store.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from hostler.model.enums import LeaseState
from hostler.model.lease import Event, Fence, Intent, Lease, LeaseView, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Limits on running and intended spending. None means no limit.

    Attributes:
        usd_per_hour, nodes: of the whole deployment. tenant_usd_per_hour, tenant_nodes: of the lease's tenant.
    """

    usd_per_hour: Decimal | None = None
    nodes: int | None = None
    tenant_usd_per_hour: Decimal | None = None
    tenant_nodes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What counts against caps now: every intent that may be or become a running machine (``open``, ``unknown``, and ``owned``
    until its node is gone).
    """

    usd_per_hour: Decimal
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StockOut:
    """A shared memory of refusals: ``subject`` (an offering key, or ``cloud/region`` or ``cloud/region//type``) is not worth
    trying before ``until``. ``count``: refusals in a row, for the decay.
    """

    subject: str
    until: datetime
    count: int
    reason: str


class Ledger(Protocol):
    """The store port."""

    def now(self) -> datetime:
        """Returns the store's clock, aware UTC. The only clock that leases are judged by."""
        ...

    def admit(self, lease: Lease, events: Sequence[Event]) -> LeaseView:
        """Writes a new lease; when one with this id exists, returns that one unchanged and writes no event."""
        ...

    def view(self, lease_id: str) -> LeaseView:
        """Returns one consistent read. Raises LeaseNotFoundError."""
        ...

    def list_leases(self, *states: LeaseState) -> tuple[Lease, ...]:
        """Returns leases in any of the states, all when none is given, oldest first."""
        ...

    def list_views(self, *states: LeaseState, newest: int | None = None) -> tuple[LeaseView, ...]:
        """Returns what ``view`` returns, of all leases in any of the states, all when none is given, oldest first, in one read.

        Args:
            newest: only so many, those that were made last; 1 or more. None: all of them.
        """
        ...

    def take_fence(self, lease_id: str, holder: str) -> Fence:
        """Returns a new fence; every older one of this lease is void from now on. Writes the event ``fence.taken``.

        Raises:
            LeaseNotFoundError: no such lease.
        """
        ...

    def insert_intent(self, intent: Intent, fence: Fence, caps: Caps, events: Sequence[Event]) -> Intent:
        """Writes intent n of a slot if, in one serialised step, the fence is the newest, the lease is open, spending is not
        stopped, intent n-1 is refused or its node is gone, and no cap would be passed.

        Returns:
            The row as stored (row_version 1).

        Raises:
            FenceLostError, LeaseClosedError, LimitExceededError, StaleWriteError: nothing was written; see each type.
        """
        ...

    def write(
        self, lease_id: str, records: Sequence[Record], events: Sequence[Event], fence: Fence | None = None
    ) -> tuple[Record, ...]:
        """Writes records of one lease and their events, all or nothing. Intents must exist already.

        Args:
            records: each with the row_version it was read at (0: new). Fields are taken as they are; moves of lease and node
                states are checked against ``model.transitions``. A Lease's ``fence`` field is never written by this.
            fence: when given it must be the newest.

        Returns:
            The rows as stored, in order, with their new row_version.

        Raises:
            StaleWriteError: another writer came first. FenceLostError: a newer attempt holds the lease.
            IllegalTransitionError: a defect.
        """
        ...

    def append_events(self, events: Sequence[Event]) -> None:
        """Writes events that change no row. ``at`` is replaced by the store's clock; secrets must not be in them."""
        ...

    def list_events(self, lease_id: str | None, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        """Returns events with a sequence above ``after``, of one lease or (None) of all, oldest first."""
        ...

    def spending(self, tenant: str | None = None) -> Spending:
        """Returns what counts against caps, of one tenant or (None) of the deployment."""
        ...

    def is_spending_stopped(self) -> bool:
        """True after ``hostler stop-spending`` until ``resume``."""
        ...

    def set_spending_stopped(self, stopped: bool, events: Sequence[Event]) -> None:
        """Stops or resumes all purchases, everywhere, at once."""
        ...

    def remember_stock_out(self, memory: StockOut) -> None:
        """Keeps a refusal, replacing an older one of the same subject."""
        ...

    def stock_outs(self) -> tuple[StockOut, ...]:
        """Returns refusals that are still in force, by subject."""
        ...

    def set_meta(self, key: str, value: str) -> None:
        """Keeps one small fact about the deployment (epoch, last reconcile time)."""
        ...

    def get_meta(self, key: str) -> str | None:
        """Returns the fact, or None."""
        ...

    def swap_meta(self, key: str, expected: str | None, value: str) -> bool:
        """Keeps the fact if it still is ``expected`` (None: not kept yet); returns whether it was."""
        ...

    def identity(self) -> str:
        """Returns what tells this store from a copy of it elsewhere; empty when that cannot be known.

        A dump that is restored has another identity. A copy of the store's own files may have the same.
        """
        ...

    def claim_call(self, account: str, *, calls_per_s: float, burst: float) -> float:
        """Takes one call from what all processes together may send to a cloud account.

        Args:
            calls_per_s: above 0, in the long run. burst: calls that may come at once after a rest, 1 or more.

        Returns:
            0 when the call may be made now; else seconds until it may be asked for again: nothing was taken.
        """
        ...
