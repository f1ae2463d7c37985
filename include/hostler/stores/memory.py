"""The ledger in memory: for the simulator and for tests. Same promises as the PostgreSQL store, held by one lock."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from hostler.ledger import rules
from hostler.ledger.errors import LeaseNotFoundError
from hostler.ledger.port import Caps, Spending, StockOut
from hostler.ledger.rules import Attempt, RecordKey, record_key
from hostler.ledger.view import make_view
from hostler.model.enums import LeaseState
from hostler.model.lease import Event, Fence, Intent, Lease, LeaseView, Node, Record


class MemoryLedger:
    """Implements ``hostler.ledger.port.Ledger``. Thread-safe; every call is one step under one lock.

    Attributes:
        clock: gives the ledger's time, aware UTC. name: its identity.
    """

    def __init__(self, clock: Callable[[], datetime], name: str = "memory") -> None:
        self.clock = clock
        self.name = name
        self._full_at_s: dict[str, float] = {}
        self._lock = threading.RLock()
        self._rows: dict[str, dict[RecordKey, Record]] = {}
        self._fences: dict[str, int] = {}
        self._events: list[Event] = []
        self._views: dict[str, LeaseView] = {}  # made anew after each change; rows are frozen, so a view may be shared
        self._live: dict[str, Intent] = {}
        self._stock_outs: dict[str, StockOut] = {}
        self._meta: dict[str, str] = {}
        self._is_stopped = False

    def now(self) -> datetime:
        """Returns the ledger's clock."""
        return self.clock()

    def admit(self, lease: Lease, events: Sequence[Event]) -> LeaseView:
        """See the port."""
        with self._lock:
            if lease.lease_id not in self._rows:
                self._rows[lease.lease_id] = {record_key(lease): replace(lease, row_version=1, fence=0)}
                self._fences[lease.lease_id] = 0
                self._append(events)
            return self.view(lease.lease_id)

    def view(self, lease_id: str) -> LeaseView:
        """See the port."""
        with self._lock:
            if lease_id not in self._views:
                view = make_view(self._shown(row) for row in self._table(lease_id).values())
                if view is None:
                    raise LeaseNotFoundError(f"no lease {lease_id!r}")
                self._views[lease_id] = view
            return self._views[lease_id]

    def list_leases(self, *states: LeaseState) -> tuple[Lease, ...]:
        """See the port."""
        with self._lock:
            leases = [self._lease(lease_id) for lease_id in self._rows]
        found = [lease for lease in leases if not states or lease.state in states]
        return tuple(sorted(found, key=lambda lease: (lease.created_at, lease.lease_id)))

    def list_views(self, *states: LeaseState, newest: int | None = None) -> tuple[LeaseView, ...]:
        """See the port."""
        with self._lock:
            leases = self.list_leases(*states)
            return tuple(self.view(lease.lease_id) for lease in (leases if newest is None else leases[-newest:]))

    def take_fence(self, lease_id: str, holder: str) -> Fence:
        """See the port."""
        with self._lock:
            self._table(lease_id)
            self._fences[lease_id] += 1
            self._views.pop(lease_id, None)
            fence = Fence(lease_id=lease_id, token=self._fences[lease_id], holder=holder)
            why = f"{holder} takes charge of the lease"
            self._append([Event(lease_id=lease_id, who=holder, what="fence.taken", why=why, at=self.now())])
            return fence

    def insert_intent(self, intent: Intent, fence: Fence, caps: Caps, events: Sequence[Event]) -> Intent:
        """See the port."""
        with self._lock:
            table = self._table(intent.lease_id)
            rules.check_fence(intent.lease_id, self._fences[intent.lease_id], fence)
            state = self._lease(intent.lease_id).state
            rules.check_is_open(intent.lease_id, state, is_spending_stopped=self._is_stopped)
            rules.check_slot_is_free(intent, self._attempts(intent))
            rules.check_caps(intent, caps, self.spending(), self.spending(intent.tenant))
            stored = replace(intent, row_version=1)
            table[record_key(stored)] = stored
            self._live[stored.intent_id] = stored
            self._views.pop(intent.lease_id, None)
            self._append(events)
            return stored

    def write(
        self, lease_id: str, records: Sequence[Record], events: Sequence[Event], fence: Fence | None = None
    ) -> tuple[Record, ...]:
        """See the port."""
        with self._lock:
            table = self._table(lease_id)
            if fence is not None:
                rules.check_fence(lease_id, self._fences[lease_id], fence)
            stored = rules.stage(lease_id, records, table)
            table.update((record_key(row), row) for row in stored)
            self._views.pop(lease_id, None)
            self._track(table, stored)
            self._append(events)
            return tuple(self._shown(row) for row in stored)

    def append_events(self, events: Sequence[Event]) -> None:
        """See the port."""
        with self._lock:
            self._append(events)

    def list_events(self, lease_id: str | None, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        """See the port."""
        with self._lock:
            events = self._events[max(after, 0) :]
        return tuple([event for event in events if lease_id is None or event.lease_id == lease_id][:limit])

    def spending(self, tenant: str | None = None) -> Spending:
        """See the port."""
        with self._lock:
            intents = [intent for intent in self._live.values() if tenant is None or intent.tenant == tenant]
        prices = [intent.offering.price_usd_per_hour or Decimal(0) for intent in intents]
        return Spending(usd_per_hour=sum(prices, Decimal(0)), nodes=len(intents))

    def is_spending_stopped(self) -> bool:
        """See the port."""
        with self._lock:
            return self._is_stopped

    def set_spending_stopped(self, stopped: bool, events: Sequence[Event]) -> None:
        """See the port."""
        with self._lock:
            self._is_stopped = stopped
            self._append(events)

    def remember_stock_out(self, memory: StockOut) -> None:
        """See the port."""
        with self._lock:
            self._stock_outs[memory.subject] = memory

    def stock_outs(self) -> tuple[StockOut, ...]:
        """See the port."""
        with self._lock:
            now = self.now()
            return tuple(
                self._stock_outs[subject] for subject in sorted(self._stock_outs) if self._stock_outs[subject].until > now
            )

    def set_meta(self, key: str, value: str) -> None:
        """See the port."""
        with self._lock:
            self._meta[key] = value

    def get_meta(self, key: str) -> str | None:
        """See the port."""
        with self._lock:
            return self._meta.get(key)

    def swap_meta(self, key: str, expected: str | None, value: str) -> bool:
        """See the port."""
        with self._lock:
            if self._meta.get(key) != expected:
                return False
            self._meta[key] = value
            return True

    def identity(self) -> str:
        """See the port."""
        return self.name

    def claim_call(self, account: str, *, calls_per_s: float, burst: float) -> float:
        """See the port."""
        with self._lock:
            full_at_s = self._full_at_s.get(account, 0.0)
            after, wait_s = rules.next_call(full_at_s, self.now().timestamp(), calls_per_s=calls_per_s, burst=burst)
            if wait_s == 0:
                self._full_at_s[account] = after
            return wait_s

    def _table(self, lease_id: str) -> dict[RecordKey, Record]:
        if lease_id not in self._rows:
            raise LeaseNotFoundError(f"no lease {lease_id!r}")
        return self._rows[lease_id]

    def _lease(self, lease_id: str) -> Lease:
        row = self._table(lease_id)["lease", lease_id]
        assert isinstance(row, Lease)  # noqa: S101 - the key names the table
        return row if row.fence == self._fences[lease_id] else replace(row, fence=self._fences[lease_id])

    def _shown(self, row: Record) -> Record:
        """Returns a row as it leaves the ledger: a lease with its newest fence."""
        if isinstance(row, Lease) and row.fence != self._fences[row.lease_id]:
            return replace(row, fence=self._fences[row.lease_id])
        return row

    def _append(self, events: Sequence[Event]) -> None:
        for event in events:
            self._events.append(replace(event, at=self.now(), sequence=len(self._events) + 1))

    def _attempts(self, intent: Intent) -> tuple[Attempt, ...]:
        """Returns the earlier intents of the slot."""
        rows = self._table(intent.lease_id).values()
        earlier = [row for row in rows if isinstance(row, Intent) and row.slot_index == intent.slot_index]
        return tuple(Attempt(attempt=row.attempt, state=row.state, is_live=row.intent_id in self._live) for row in earlier)

    def _track(self, table: dict[RecordKey, Record], stored: Sequence[Record]) -> None:
        """Keeps the index of intents that are or may become running machines."""
        touched = {row.intent_id for row in stored if isinstance(row, Intent | Node)}
        for intent_id in touched:
            intent = table.get(("intent", intent_id))
            if not isinstance(intent, Intent):
                continue
            nodes = [row.state for row in table.values() if isinstance(row, Node) and row.intent_id == intent_id]
            if rules.is_live(intent.state, nodes):
                self._live[intent_id] = intent
            else:
                self._live.pop(intent_id, None)
