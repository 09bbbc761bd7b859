"""From when on the ledger remembers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job_watermark",
        sa.Column(
            "id", sa.Integer, sa.CheckConstraint("id = 1", name="ck_job_watermark_id"), primary_key=True
        ),
        sa.Column("watermark", sa.DateTime(timezone=True), nullable=False),
        sa.Column("raised_at", sa.DateTime(timezone=True)),
        sa.Column("pruned_at", sa.DateTime(timezone=True)),
        comment="One row, once the ledger was pruned: keys of jobs enqueued before may have been forgotten.",
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("job_watermark")
