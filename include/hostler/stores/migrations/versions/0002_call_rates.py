"""Calls to a cloud account are counted in the ledger, for all processes together.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

SCHEMA = "hostler"


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "call_rates",
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("full_at_s", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("account", name="call_rates_pkey"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops the table; what it holds is worth a few seconds at most."""
    op.drop_table("call_rates", schema=SCHEMA)
