"""The ledger in memory: for the simulator and for tests. Same promises as the PostgreSQL store, held by one lock."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from hostler.ledger.errors import (
    FenceLostError,
    LeaseClosedError,
    LeaseNotFoundError,
    LimitExceededError,
    StaleWriteError,
)
from hostler.ledger.port import Caps, Spending, StockOut
from hostler.model.enums import IntentState, LeaseState, NodeState
from hostler.model.lease import Backup, Event, Fence, Intent, Job, Lease, LeaseView, Node, Receipt, Record
from hostler.model.transitions import check_lease_move, check_node_move

CLOSED = frozenset({LeaseState.DRAINING, LeaseState.RELEASED, LeaseState.EXPIRED, LeaseState.LOST})
"""Lease states in which nothing more is bought."""

FIRST_ATTEMPT = 1
"""Number of a slot's first intent."""


def _key(record: Record) -> tuple[str, str]:
    """Returns the table name and the primary key of a record."""
    match record:
        case Lease():
            return "lease", record.lease_id
        case Intent():
            return "intent", record.intent_id
        case Node():
            return "node", record.node_name
        case Job():
            return "job", record.job_id
        case Backup():
            return "backup", record.backup_id
        case Receipt():
            return "receipt", record.lease_id


class MemoryLedger:
    """Implements ``hostler.ledger.port.Ledger``. Thread-safe; every call is one step under one lock.

    Attributes:
        clock: gives the ledger's time, aware UTC.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self._lock = threading.RLock()
        self._rows: dict[str, dict[tuple[str, str], Record]] = {}
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
                self._rows[lease.lease_id] = {_key(lease): replace(lease, row_version=1, fence=0)}
                self._fences[lease.lease_id] = 0
                self._append(events)
            return self.view(lease.lease_id)

    def view(self, lease_id: str) -> LeaseView:
        """See the port."""
        with self._lock:
            self._table(lease_id)
            if lease_id not in self._views:
                self._views[lease_id] = self._new_view(lease_id)
            return self._views[lease_id]

    def _new_view(self, lease_id: str) -> LeaseView:
        rows = tuple(self._table(lease_id).values())
        intents = sorted((row for row in rows if isinstance(row, Intent)), key=lambda row: (row.slot_index, row.attempt))
        attempts = {intent.intent_id: intent.attempt for intent in intents}
        nodes = [row for row in rows if isinstance(row, Node)]
        jobs = [row for row in rows if isinstance(row, Job)]
        backups = [row for row in rows if isinstance(row, Backup)]
        return LeaseView(
            lease=self._lease(lease_id),
            intents=tuple(intents),
            nodes=tuple(sorted(nodes, key=lambda row: (row.slot_index, attempts.get(row.intent_id, 0), row.node_name))),
            jobs=tuple(sorted(jobs, key=lambda row: row.attempt)),
            backups=tuple(sorted(backups, key=lambda row: (row.sealed_at, row.backup_id))),
            receipt=next((row for row in rows if isinstance(row, Receipt)), None),
        )

    def list_leases(self, *states: LeaseState) -> tuple[Lease, ...]:
        """See the port."""
        with self._lock:
            leases = [self._lease(lease_id) for lease_id in self._rows]
        found = [lease for lease in leases if not states or lease.state in states]
        return tuple(sorted(found, key=lambda lease: (lease.created_at, lease.lease_id)))

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
            self._check_fence(intent.lease_id, fence)
            self._check_open(intent.lease_id)
            self._check_slot_is_free(intent)
            self._check_caps(intent, caps)
            stored = replace(intent, row_version=1)
            table[_key(stored)] = stored
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
                self._check_fence(lease_id, fence)
            staged: dict[tuple[str, str], Record] = {}
            stored = []
            for record in records:
                key = _key(record)
                row = self._checked(lease_id, record, staged.get(key, table.get(key)))
                staged[key] = row
                stored.append(row)
            table.update(staged)
            self._views.pop(lease_id, None)
            self._track(table, staged)
            self._append(events)
            return tuple(stored)

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

    def _table(self, lease_id: str) -> dict[tuple[str, str], Record]:
        if lease_id not in self._rows:
            raise LeaseNotFoundError(f"no lease {lease_id!r}")
        return self._rows[lease_id]

    def _lease(self, lease_id: str) -> Lease:
        row = self._table(lease_id)["lease", lease_id]
        assert isinstance(row, Lease)  # noqa: S101 - the key names the table
        return replace(row, fence=self._fences[lease_id])

    def _append(self, events: Sequence[Event]) -> None:
        for event in events:
            self._events.append(replace(event, at=self.now(), sequence=len(self._events) + 1))

    def _check_fence(self, lease_id: str, fence: Fence) -> None:
        newest = self._fences[lease_id]
        if fence.lease_id != lease_id or fence.token != newest:
            raise FenceLostError(f"lease {lease_id}: fence {fence.token} of {fence.holder} is void, {newest} is the newest")

    def _check_open(self, lease_id: str) -> None:
        state = self._lease(lease_id).state
        if state in CLOSED:
            raise LeaseClosedError(f"lease {lease_id} is {state}: nothing more is bought for it")
        if self._is_stopped:
            raise LeaseClosedError("purchases are stopped for the whole deployment (`hostler resume` lifts it)")

    def _check_slot_is_free(self, intent: Intent) -> None:
        rows = self._table(intent.lease_id).values()
        earlier = [row for row in rows if isinstance(row, Intent) and row.slot_index == intent.slot_index]
        expected = max((row.attempt for row in earlier), default=FIRST_ATTEMPT - 1) + 1
        if intent.attempt != expected:
            raise StaleWriteError(f"slot {intent.slot_index}: intent {intent.attempt} asked for, {expected} is the next")
        for row in earlier:
            if row.intent_id in self._live:
                raise StaleWriteError(f"slot {intent.slot_index}: intent {row.attempt} is {row.state} and not known to be gone")

    def _check_caps(self, intent: Intent, caps: Caps) -> None:
        price = intent.offering.price_usd_per_hour
        if price is None:
            raise LimitExceededError(f"{intent.offering.key} has no known price: no cap can hold", limit="usd_per_hour")
        everyone, tenant = self.spending(), self.spending(intent.tenant)
        self._hold("usd_per_hour", caps.usd_per_hour, everyone.usd_per_hour, price)
        self._hold("nodes", caps.nodes, everyone.nodes, 1)
        self._hold("tenant_usd_per_hour", caps.tenant_usd_per_hour, tenant.usd_per_hour, price)
        self._hold("tenant_nodes", caps.tenant_nodes, tenant.nodes, 1)

    @staticmethod
    def _hold(limit: str, cap: Decimal | int | None, used: Decimal | int, asked: Decimal | int) -> None:
        if cap is not None and used + asked > cap:
            raise LimitExceededError(f"{limit}: cap {cap}, in use {used}, asked {asked}", limit=limit)

    def _checked(self, lease_id: str, record: Record, before: Record | None) -> Record:
        """Returns the row to store, or raises: the optimistic lock and the transition tables."""
        if record.lease_id != lease_id:
            raise ValueError(f"record of lease {record.lease_id} in a write to {lease_id}")
        found = 0 if before is None else before.row_version
        if record.row_version != found:
            raise StaleWriteError(f"{_key(record)}: read at version {record.row_version}, is at {found}")
        if before is None and isinstance(record, Intent | Lease):
            raise StaleWriteError(f"{_key(record)}: does not exist; intents come by insert_intent, leases by admit")
        if isinstance(record, Lease) and isinstance(before, Lease):
            check_lease_move(before.state, record.state)
        if isinstance(record, Node) and isinstance(before, Node):
            check_node_move(before.state, record.state)
        return replace(record, row_version=found + 1)

    def _track(self, table: dict[tuple[str, str], Record], staged: dict[tuple[str, str], Record]) -> None:
        """Keeps the index of intents that are or may become running machines."""
        touched = {row.intent_id for row in staged.values() if isinstance(row, Intent | Node)}
        for intent_id in touched:
            intent = table.get(("intent", intent_id))
            if not isinstance(intent, Intent):
                continue
            nodes = [row for row in table.values() if isinstance(row, Node) and row.intent_id == intent_id]
            gone = any(node.state is NodeState.GONE for node in nodes)
            if intent.state is IntentState.REFUSED or (intent.state is IntentState.OWNED and gone):
                self._live.pop(intent_id, None)
            else:
                self._live[intent_id] = intent
