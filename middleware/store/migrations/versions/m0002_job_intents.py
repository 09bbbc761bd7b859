"""Attempts at effects outside the database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job_intents",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("fence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("args_hash", sa.LargeBinary, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("reason", sa.Text),
        sa.Column("result", sa.Text),
        comment="One row for each attempt at an effect outside the database, committed before its call.",
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("job_intents")
