"""The ledger in PostgreSQL: safe between threads, processes and machines."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, Float, Table, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from hostler.ledger import rules
from hostler.ledger.errors import LeaseNotFoundError
from hostler.ledger.port import Caps, Spending, StockOut
from hostler.ledger.view import make_view
from hostler.model.enums import LeaseState
from hostler.model.lease import Event, Fence, Intent, Lease, LeaseView, Node, Record
from hostler.stores import purchase, rows
from hostler.stores.database import Database
from hostler.stores.faults import guarded
from hostler.stores.locks import EVENTS, PURCHASE, take_lock
from hostler.stores.tables import call_rates, leases, meta, stock_outs, switches
from hostler.stores.tables import events as event_table

POOL_SIZE: Final = 8
"""Connections of a process at most; opened when needed, so that a quiet process holds one."""


class PostgresLedger:
    """Implements ``hostler.ledger.port.Ledger``. Thread-safe; may be carried over a fork.

    Every method raises LedgerUnavailableError beside what the port says. When the answer to a commit is lost, the database is
    asked what became of it; only when it cannot be asked either, the error's words say that the change may have been kept.

    Args:
        url: SQLAlchemy address of a database that ``stores.migrate.upgrade`` has brought to the right schema.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url, pool_size=POOL_SIZE)

    @property
    def place(self) -> str:
        """Host, port and database, without login."""
        return self._database.place

    def close(self) -> None:
        """Closes idle connections; the ledger may still be used."""
        self._database.close()

    @guarded
    def now(self) -> datetime:
        """Returns the database's clock."""
        with self._database.read() as connection:
            return _utc(connection.scalar(select(func.clock_timestamp())))

    @guarded
    def admit(self, lease: Lease, events: Sequence[Event]) -> LeaseView:
        """See the port."""
        row = replace(lease, row_version=1, fence=0)
        with self._database.change() as connection:
            if rows.insert_lease(connection, row):
                _append(connection, events)
        return self.view(lease.lease_id)

    @guarded
    def view(self, lease_id: str) -> LeaseView:
        """See the port. One statement."""
        with self._database.read() as connection:
            found = connection.execute(rows.all_rows(lease_id)).all()
        view = make_view(rows.read_record(row) for row in found)
        if view is None:
            raise LeaseNotFoundError(f"no lease {lease_id!r}")
        return view

    @guarded
    def list_leases(self, *states: LeaseState) -> tuple[Lease, ...]:
        """See the port."""
        wanted = rows.lease_rows().order_by(leases.c.created_at, leases.c.lease_id)
        if states:
            wanted = wanted.where(leases.c.state.in_([state.value for state in states]))
        with self._database.read() as connection:
            records = [rows.read_record(row) for row in connection.execute(wanted)]
        return tuple(record for record in records if isinstance(record, Lease))

    @guarded
    def list_views(self, *states: LeaseState, newest: int | None = None) -> tuple[LeaseView, ...]:
        """See the port. One statement."""
        with self._database.read() as connection:
            found = [rows.read_record(row) for row in connection.execute(rows.rows_of_many(states, newest))]
        grouped: dict[str, list[Record]] = {}
        for record in found:
            grouped.setdefault(record.lease_id, []).append(record)
        views = [view for records in grouped.values() if (view := make_view(records)) is not None]
        return tuple(sorted(views, key=lambda view: (view.lease.created_at, view.lease.lease_id)))

    @guarded
    def take_fence(self, lease_id: str, holder: str) -> Fence:
        """See the port."""
        taken = update(leases).where(leases.c.lease_id == lease_id).values(fence=leases.c.fence + 1, fence_holder=holder)
        with self._database.change() as connection:
            token = connection.scalar(taken.returning(leases.c.fence))
            if token is None:
                raise LeaseNotFoundError(f"no lease {lease_id!r}")
            why = f"{holder} takes charge of the lease"
            at = datetime.now(tz=UTC)
            _append(connection, [Event(lease_id=lease_id, who=holder, what="fence.taken", why=why, at=at)])
        return Fence(lease_id=lease_id, token=token, holder=holder)

    @guarded
    def insert_intent(self, intent: Intent, fence: Fence, caps: Caps, events: Sequence[Event]) -> Intent:
        """See the port."""
        stored = replace(intent, row_version=1)
        with self._database.change() as connection:
            take_lock(connection, PURCHASE)
            purchase.check_purchase(connection, stored, fence, caps)
            rows.store_records(connection, [stored])
            _append(connection, events)
        return stored

    @guarded
    def write(
        self, lease_id: str, records: Sequence[Record], events: Sequence[Event], fence: Fence | None = None
    ) -> tuple[Record, ...]:
        """See the port."""
        with self._database.change() as connection:
            purchase.lock_lease(connection, lease_id, fence)
            stored: tuple[Record, ...] = ()
            if records:
                keys = {rules.record_key(record) for record in records}
                before = [rows.read_record(row) for row in connection.execute(rows.some_rows(lease_id, keys))]
                stored = rules.stage(lease_id, records, {rules.record_key(row): row for row in before})
                rows.store_records(connection, stored)
                purchase.count_live(connection, lease_id, [row.intent_id for row in stored if isinstance(row, Intent | Node)])
            _append(connection, events)
        return stored

    @guarded
    def append_events(self, events: Sequence[Event]) -> None:
        """See the port."""
        if events:
            with self._database.change() as connection:
                _append(connection, events)

    @guarded
    def list_events(self, lease_id: str | None, after: int = 0, limit: int = 1000) -> tuple[Event, ...]:
        """See the port."""
        wanted = select(event_table.c.sequence, event_table.c.at, event_table.c.body)
        wanted = wanted.where(event_table.c.sequence > after).order_by(event_table.c.sequence).limit(limit)
        if lease_id is not None:
            wanted = wanted.where(event_table.c.lease_id == lease_id)
        with self._database.read() as connection:
            return tuple(rows.read_event(row) for row in connection.execute(wanted))

    @guarded
    def spending(self, tenant: str | None = None) -> Spending:
        """See the port."""
        with self._database.read() as connection:
            return purchase.spending_of(connection, tenant)

    @guarded
    def is_spending_stopped(self) -> bool:
        """See the port."""
        with self._database.read() as connection:
            return purchase.is_stopped(connection)

    @guarded
    def set_spending_stopped(self, stopped: bool, events: Sequence[Event]) -> None:
        """See the port. When it returns, no purchase that began earlier can still be written."""
        with self._database.change() as connection:
            take_lock(connection, PURCHASE)
            _put(connection, switches, name=purchase.SPENDING_SWITCH, is_on=stopped)
            _append(connection, events)

    @guarded
    def remember_stock_out(self, memory: StockOut) -> None:
        """See the port."""
        with self._database.change() as connection:
            _put(connection, stock_outs, subject=memory.subject, until=memory.until, count=memory.count, reason=memory.reason)

    @guarded
    def stock_outs(self) -> tuple[StockOut, ...]:
        """See the port."""
        wanted = select(stock_outs).where(stock_outs.c.until > func.clock_timestamp()).order_by(stock_outs.c.subject)
        with self._database.read() as connection:
            return tuple(
                StockOut(subject=row["subject"], until=_utc(row["until"]), count=row["count"], reason=row["reason"])
                for row in connection.execute(wanted).mappings()
            )

    @guarded
    def set_meta(self, key: str, value: str) -> None:
        """See the port."""
        with self._database.change() as connection:
            _put(connection, meta, key=key, value=value)

    @guarded
    def get_meta(self, key: str) -> str | None:
        """See the port."""
        with self._database.read() as connection:
            return connection.scalar(select(meta.c.value).where(meta.c.key == key))

    @guarded
    def swap_meta(self, key: str, expected: str | None, value: str) -> bool:
        """See the port."""
        with self._database.change() as connection:
            if expected is None:
                added = upsert(meta).values(key=key, value=value).on_conflict_do_nothing(index_elements=["key"])
                return connection.scalar(added.returning(meta.c.key)) is not None
            kept = update(meta).where(meta.c.key == key, meta.c.value == expected).values(value=value)
            return connection.scalar(kept.returning(meta.c.key)) is not None

    @guarded
    def identity(self) -> str:
        """See the port: the server's own number, and the database's in it; both are given anew where a dump is restored."""
        wanted = text(
            "SELECT system_identifier || '/' || oid FROM pg_control_system(), pg_database WHERE datname = current_database()"
        )
        with self._database.read() as connection:
            return str(connection.scalar(wanted))

    @guarded
    def claim_call(self, account: str, *, calls_per_s: float, burst: float) -> float:
        """See the port. One row an account; its lock makes callers come one after the other."""
        at_s = func.extract("epoch", func.clock_timestamp()).cast(Float)
        with self._database.change() as connection:
            first = upsert(call_rates).values(account=account, full_at_s=0.0)
            connection.execute(first.on_conflict_do_nothing(index_elements=["account"]))
            row = select(call_rates.c.full_at_s, at_s).where(call_rates.c.account == account).with_for_update()
            full_at_s, now_s = connection.execute(row).one()
            after, wait_s = rules.next_call(full_at_s, now_s, calls_per_s=calls_per_s, burst=burst)
            if wait_s == 0:
                mine = update(call_rates).where(call_rates.c.account == account)
                connection.execute(mine.values(full_at_s=after))
            return wait_s


def _utc(moment: datetime | None) -> datetime:
    assert moment is not None  # noqa: S101 - the column or function is never null
    return moment.astimezone(UTC)


def _append(connection: Connection, events: Sequence[Event]) -> None:
    """Adds events. The last step of a transaction, since it holds up all other writers of events."""
    if events:
        take_lock(connection, EVENTS)
        connection.execute(insert(event_table), [rows.event_values(event) for event in events])


def _put(connection: Connection, table: Table, **values: Any) -> None:
    """Inserts or replaces the row with the first value as its key."""
    key, *others = values
    statement = upsert(table).values(values)
    connection.execute(statement.on_conflict_do_update(index_elements=[key], set_={name: values[name] for name in others}))
