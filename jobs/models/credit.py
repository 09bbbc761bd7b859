"""Accounts pay for what their tasks use."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, DateTime, Text, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


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
