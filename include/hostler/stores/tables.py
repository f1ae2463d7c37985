"""The tables of the PostgreSQL ledger. Key columns are what the database looks at; ``body`` is the record (``ledger.codec``).

A migration in ``migrations/versions`` brings a database here; a test holds both together.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA: Final = "hostler"
VERSION_TABLE: Final = "schema_version"
HEAD: Final = "0002"
"""The migration that this program's tables are at."""

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
    },
)


def _text(name: str, **options: Any) -> Column[str]:
    return Column(name, Text, nullable=False, **options)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _lease_id(**options: Any) -> Column[str]:
    return Column("lease_id", Text, ForeignKey(f"{SCHEMA}.leases.lease_id"), nullable=False, primary_key=True, **options)


def _row() -> tuple[Column[int], Column[Any]]:
    return _number("row_version"), Column("body", JSONB, nullable=False)


leases = Table(
    "leases",
    metadata,
    Column("lease_id", Text, primary_key=True),
    _text("deployment"),
    _text("tenant"),
    _text("state"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("fence_holder", Text),
    *_row(),
    Index(None, "state", "created_at"),
    Index(None, "created_at"),
)
"""``fence``: the newest token; it, and ``row_version`` here and below, hold over what ``body`` says."""

intents = Table(
    "intents",
    metadata,
    _lease_id(),
    _text("intent_id", primary_key=True),
    _number("slot_index"),
    _number("attempt"),
    _text("tenant"),
    _text("state"),
    Column("usd_per_hour", Numeric),
    Column("is_live", Boolean, nullable=False),
    *_row(),
    UniqueConstraint("lease_id", "slot_index", "attempt"),
    Index("intents_live_idx", "tenant", postgresql_where=text("is_live")),
)
"""``is_live``: it counts against caps (``ledger.rules.is_live``); every write that may change it sets it again."""

nodes = Table(
    "nodes",
    metadata,
    _lease_id(),
    _text("node_name", primary_key=True),
    _number("slot_index"),
    _text("intent_id"),
    _text("provider_id"),
    _text("state"),
    *_row(),
    Index(None, "lease_id", "intent_id"),
    Index(None, "state"),
    Index(None, "provider_id"),
)

jobs = Table("jobs", metadata, _lease_id(), _text("job_id", primary_key=True), _number("attempt"), _text("state"), *_row())

backups = Table(
    "backups",
    metadata,
    _lease_id(),
    _text("backup_id", primary_key=True),
    Column("sealed_at", DateTime(timezone=True), nullable=False),
    *_row(),
)

receipts = Table("receipts", metadata, _lease_id(), *_row())

events = Table(
    "events",
    metadata,
    Column("sequence", BigInteger, Identity(always=True), primary_key=True),
    Column("lease_id", Text),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    _text("who"),
    _text("what"),
    Column("body", JSONB, nullable=False),
    Index(None, "lease_id", "sequence"),
)
"""Append-only: a trigger of the database refuses UPDATE, DELETE and TRUNCATE. ``sequence`` and ``at`` hold over ``body``."""

stock_outs = Table(
    "stock_outs",
    metadata,
    Column("subject", Text, primary_key=True),
    Column("until", DateTime(timezone=True), nullable=False),
    _number("count"),
    _text("reason"),
)

switches = Table("switches", metadata, Column("name", Text, primary_key=True), Column("is_on", Boolean, nullable=False))

meta = Table("meta", metadata, Column("key", Text, primary_key=True), _text("value"))

call_rates = Table(
    "call_rates", metadata, Column("account", Text, primary_key=True), Column("full_at_s", Float, nullable=False)
)
"""When each cloud account's bucket of calls would be full again, as seconds since 1970 (``ledger.rules.next_call``)."""
