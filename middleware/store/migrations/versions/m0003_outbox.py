"""Jobs that are committed with what they follow from, and who publishes those that are left over."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job_outbox",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("enqueued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("claimed_by", sa.Text, nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("refusals", sa.Integer, nullable=False, server_default="0"),
        sa.Column("problem", sa.Text),
        comment="Jobs that were committed with what they follow from, until the broker has confirmed them.",
    )
    op.create_index("ix_job_outbox_claimed_until", "job_outbox", ["claimed_until"])
    op.create_table(
        "job_maintenance",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        comment="One row for each process that does the maintenance, updated every few seconds.",
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("job_maintenance")
    op.drop_table("job_outbox")
