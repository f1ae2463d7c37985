"""The ledger's first tables.

Revision ID: 0001
Revises: nothing
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

SCHEMA = "hostler"

APPEND_ONLY = """
CREATE FUNCTION hostler.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are append-only: % is refused', TG_OP USING ERRCODE = 'restrict_violation';
END $$
"""


def upgrade() -> None:
    """Makes all tables, and the trigger that keeps events as they were written."""
    op.create_table(
        "leases",
        _text("lease_id"),
        _text("deployment"),
        _text("tenant"),
        _text("state"),
        _time("created_at"),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("fence_holder", sa.Text),
        *_row(),
        sa.PrimaryKeyConstraint("lease_id", name="leases_pkey"),
        schema=SCHEMA,
    )
    op.create_index("leases_state_created_at_idx", "leases", ["state", "created_at"], schema=SCHEMA)
    op.create_index("leases_created_at_idx", "leases", ["created_at"], schema=SCHEMA)
    _create_intents()
    _create_nodes()
    _create_part("jobs", "job_id", _number("attempt"), _text("state"))
    _create_part("backups", "backup_id", _time("sealed_at"))
    _create_part("receipts", None)
    _create_events()
    op.create_table(
        "stock_outs",
        _text("subject"),
        _time("until"),
        _number("count"),
        _text("reason"),
        sa.PrimaryKeyConstraint("subject", name="stock_outs_pkey"),
        schema=SCHEMA,
    )
    is_on = sa.Column("is_on", sa.Boolean, nullable=False)
    op.create_table("switches", _text("name"), is_on, sa.PrimaryKeyConstraint("name", name="switches_pkey"), schema=SCHEMA)
    op.create_table("meta", _text("key"), _text("value"), sa.PrimaryKeyConstraint("key", name="meta_pkey"), schema=SCHEMA)


def downgrade() -> None:
    """Drops all tables, with all that is in them."""
    for table in ("meta", "switches", "stock_outs", "events", "receipts", "backups", "jobs", "nodes", "intents", "leases"):
        op.drop_table(table, schema=SCHEMA)
    op.execute("DROP FUNCTION hostler.refuse_change()")


def _create_intents() -> None:
    _create_part(
        "intents",
        "intent_id",
        _number("slot_index"),
        _number("attempt"),
        _text("tenant"),
        _text("state"),
        sa.Column("usd_per_hour", sa.Numeric),
        sa.Column("is_live", sa.Boolean, nullable=False),
        sa.UniqueConstraint("lease_id", "slot_index", "attempt", name="intents_lease_id_slot_index_attempt_key"),
    )
    op.create_index("intents_live_idx", "intents", ["tenant"], schema=SCHEMA, postgresql_where=sa.text("is_live"))


def _create_nodes() -> None:
    _create_part("nodes", "node_name", _number("slot_index"), _text("intent_id"), _text("provider_id"), _text("state"))
    op.create_index("nodes_lease_id_intent_id_idx", "nodes", ["lease_id", "intent_id"], schema=SCHEMA)
    op.create_index("nodes_state_idx", "nodes", ["state"], schema=SCHEMA)
    op.create_index("nodes_provider_id_idx", "nodes", ["provider_id"], schema=SCHEMA)


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("sequence", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("lease_id", sa.Text),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.clock_timestamp()),
        _text("who"),
        _text("what"),
        sa.Column("body", JSONB, nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="events_pkey"),
        schema=SCHEMA,
    )
    op.create_index("events_lease_id_sequence_idx", "events", ["lease_id", "sequence"], schema=SCHEMA)
    op.execute(APPEND_ONLY)
    op.execute(
        "CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON hostler.events "
        "FOR EACH STATEMENT EXECUTE FUNCTION hostler.refuse_change()"
    )


def _create_part(table: str, name: str | None, *columns: Any) -> None:
    """Makes a table of rows under a lease, keyed by lease and ``name``."""
    named = (_text(name),) if name else ()
    key = ("lease_id", name) if name else ("lease_id",)
    op.create_table(
        table,
        _text("lease_id"),
        *named,
        *columns,
        *_row(),
        sa.PrimaryKeyConstraint(*key, name=f"{table}_pkey"),
        sa.ForeignKeyConstraint(["lease_id"], ["hostler.leases.lease_id"], name=f"{table}_lease_id_fkey"),
        schema=SCHEMA,
    )


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _row() -> tuple[sa.Column[int], sa.Column[Any]]:
    return _number("row_version"), sa.Column("body", JSONB, nullable=False)
