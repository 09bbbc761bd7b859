"""What does the sample domain look like? Accounts pay for what their tasks use.

There are no foreign keys: a charge updates the account's row in the transaction that writes the entry, so
the row is there; a foreign key would look it up and lock it a second time for each charge.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, DateTime, MetaData, Text, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Base of the application's tables."""

    # Named constraints: a later migration can drop what it can name.
    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )


class Account(Base):
    """Who pays."""

    __tablename__ = "accounts"
    __table_args__ = (CheckConstraint("balance >= 0", name="balance"),)

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    balance: Mapped[int] = mapped_column(BigInteger)
    """In credits; the database itself refuses a negative one."""


class Usage(Base):
    """What one message of a task cost, written by the product before it sends the charge."""

    __tablename__ = "usages"
    __table_args__ = (CheckConstraint("cost > 0", name="cost"),)

    task_id: Mapped[str] = mapped_column(Text, primary_key=True)
    message_id: Mapped[str] = mapped_column(Text, primary_key=True)
    account_id: Mapped[str] = mapped_column(Text)
    cost: Mapped[int] = mapped_column(BigInteger)
    """In credits."""


class CreditEntry(Base):
    """A charge that took place; `reference` says for what, and is unique."""

    __tablename__ = "credit_entries"
    __table_args__ = (CheckConstraint("amount > 0", name="amount"),)

    reference: Mapped[str] = mapped_column(Text, primary_key=True)
    account_id: Mapped[str] = mapped_column(Text)
    amount: Mapped[int] = mapped_column(BigInteger)
    """In credits."""
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
