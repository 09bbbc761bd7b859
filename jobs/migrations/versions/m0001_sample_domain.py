"""Accounts, usages and credit entries."""

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
        "accounts",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("balance", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_accounts_balance")),
    )
    op.create_table(
        "usages",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("message_id", sa.Text, nullable=False),
        sa.Column("account_id", sa.Text, nullable=False),
        sa.Column("cost", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("task_id", "message_id", name=op.f("pk_usages")),
        sa.CheckConstraint("cost > 0", name=op.f("ck_usages_cost")),
    )
    op.create_table(
        "credit_entries",
        sa.Column("reference", sa.Text, nullable=False),
        sa.Column("account_id", sa.Text, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("reference", name=op.f("pk_credit_entries")),
        sa.CheckConstraint("amount > 0", name=op.f("ck_credit_entries_amount")),
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("credit_entries")
    op.drop_table("usages")
    op.drop_table("accounts")
