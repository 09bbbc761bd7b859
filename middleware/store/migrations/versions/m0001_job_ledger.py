"""Spent idempotency keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job_ledger",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("args_hash", sa.LargeBinary, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        comment="One row for each idempotency key that is spent, written in the commit of its job's effect.",
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("job_ledger")
