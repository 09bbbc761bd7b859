"""Job ids that are taken while their jobs are unfinished."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job_submissions",
        sa.Column("job_id", sa.Text, primary_key=True),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("running", sa.Text),
        sa.Column("outbox_id", sa.Uuid, nullable=False),
        sa.Column("window_until", sa.DateTime(timezone=True)),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ending_at", sa.DateTime(timezone=True)),
        comment="One row for each job_id that is taken: which message carries its job.",
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("job_submissions")
