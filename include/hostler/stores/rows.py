"""Between records and the rows of ``stores.tables``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from sqlalchemy import Connection, Row, Select, Table, and_, literal, null, select, union_all
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import insert

from hostler.ledger import codec
from hostler.ledger.rules import RecordKey, is_live, record_key
from hostler.model.enums import LeaseState
from hostler.model.lease import Event, Intent, Lease, Record
from hostler.stores import tables

_TABLES: Final[dict[str, Table]] = {
    "lease": tables.leases,
    "intent": tables.intents,
    "node": tables.nodes,
    "job": tables.jobs,
    "backup": tables.backups,
    "receipt": tables.receipts,
}
_NAMES: Final = {"intent": "intent_id", "node": "node_name", "job": "job_id", "backup": "backup_id"}
"""The column that names a row within its lease, where there is one."""

_FIXED: Final = {tables.leases: frozenset({"lease_id", "fence", "fence_holder"}), tables.intents: frozenset({"is_live"})}
"""Columns that no write of a record sets: fences are taken, and liveness is counted."""


def all_rows(lease_id: str) -> Any:
    """Returns the statement that reads all rows of a lease at one moment."""
    return union_all(*(_select(kind).where(table.c.lease_id == lease_id) for kind, table in _TABLES.items()))


def rows_of_many(states: Sequence[LeaseState], newest: int | None) -> Any:
    """Returns the statement that reads all rows of many leases at one moment, in no order.

    Args:
        states: of the leases; empty means any. newest: only of so many leases, those made last; None means all.
    """
    leases = tables.leases
    wanted = select(leases.c.lease_id)
    if states:
        wanted = wanted.where(leases.c.state.in_([state.value for state in states]))
    if newest is not None:
        wanted = wanted.order_by(leases.c.created_at.desc(), leases.c.lease_id.desc()).limit(newest)
    chosen = wanted.cte("chosen")
    return union_all(*(_select(kind).where(table.c.lease_id.in_(select(chosen))) for kind, table in _TABLES.items()))


def some_rows(lease_id: str, keys: Iterable[RecordKey]) -> Any:
    """Returns the statement that reads the named rows of a lease; at least one key."""
    names: dict[str, list[str]] = {}
    for kind, name in keys:
        names.setdefault(kind, []).append(name)
    return union_all(*(_select(kind).where(_is_named(kind, lease_id, wanted)) for kind, wanted in names.items()))


def lease_rows() -> Select[Any]:
    """Returns the statement that reads leases; to be narrowed."""
    return _select("lease")


def read_record(row: Row[*tuple[Any, ...]]) -> Record:
    """Returns the record of a row of the statements above. Raises LedgerUnavailableError when it is damaged."""
    held = {"row_version": row.row_version} if row.fence is None else {"row_version": row.row_version, "fence": row.fence}
    return cast("Record", codec.decode({**row.body, **held}))


def store_records(connection: Connection, records: Iterable[Record]) -> None:
    """Inserts or replaces rows, one statement a table."""
    newest = {record_key(record): record for record in records}
    for kind, table in _TABLES.items():
        values = [_values(record) for (found, _), record in newest.items() if found == kind]
        if values:
            statement = insert(table)
            key = [column.name for column in table.primary_key]
            fixed = _FIXED.get(table, frozenset()) | set(key)
            changed = {column.name: statement.excluded[column.name] for column in table.c if column.name not in fixed}
            connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changed), values)


def insert_lease(connection: Connection, lease: Lease) -> bool:
    """Inserts a new lease. Returns False when one with this id exists, and leaves it as it is."""
    statement = insert(tables.leases).values(**_values(lease)).on_conflict_do_nothing(index_elements=["lease_id"])
    return connection.scalar(statement.returning(tables.leases.c.lease_id)) is not None


def event_values(event: Event) -> dict[str, Any]:
    """Returns the columns of an event; number and time are the database's."""
    body = codec.encode(event)
    return {"lease_id": body["lease_id"], "who": body["who"], "what": body["what"], "body": body}


def read_event(row: Row[*tuple[Any, ...]]) -> Event:
    """Returns the event of a row. Raises LedgerUnavailableError when it is damaged."""
    return replace(cast("Event", codec.decode(row.body)), sequence=row.sequence, at=row.at)


def _select(kind: str) -> Select[Any]:
    table = _TABLES[kind]
    # Typed: a union of two bare NULLs is text to PostgreSQL, which then takes no number from the lease's part.
    fence = table.c.fence if kind == "lease" else sql_cast(null(), tables.leases.c.fence.type)
    return select(literal(kind).label("kind"), table.c.row_version, table.c.body, fence.label("fence"))


def _is_named(kind: str, lease_id: str, names: Sequence[str]) -> Any:
    table = _TABLES[kind]
    mine = table.c.lease_id == lease_id
    return mine if kind not in _NAMES else and_(mine, table.c[_NAMES[kind]].in_(names))


def _values(record: Record) -> Mapping[str, Any]:
    """Returns the columns of a record: its fields that have a column, and the document."""
    table = _TABLES[codec.kind_of(record)]
    body = codec.encode(record)
    columns = {column.name: _value(record, body, column.name) for column in table.c if hasattr(record, column.name)}
    columns["body"] = body
    match record:
        case Lease():
            columns |= {"tenant": body["request"]["tenant"]}
        case Intent():
            columns |= {"usd_per_hour": record.offering.price_usd_per_hour, "is_live": is_live(record.state, ())}
    return columns


def _value(record: Record, body: Mapping[str, Any], name: str) -> Any:
    """Returns a column's value: texts and enums as the document has them, so that the database can keep them."""
    value = getattr(record, name)
    return body[name] if isinstance(value, str) else value
