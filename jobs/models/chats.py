"""Chats grow message by message and are summarised now and then."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, DateTime, Text, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class Chat(Base):
    """A conversation."""

    __tablename__ = "chats"

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    title: Mapped[str] = mapped_column(Text)


class ChatMessage(Base):
    """What somebody said; messages are added at the end and stay as they are."""

    __tablename__ = "chat_messages"
    __table_args__ = (CheckConstraint("position > 0", name="position"),)

    chat_id: Mapped[str] = mapped_column(Text, primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    """Counted from 1."""
    author: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)


class ChatSummary(Base):
    """What a chat came to, up to one of its messages."""

    __tablename__ = "chat_summaries"

    chat_id: Mapped[str] = mapped_column(Text, primary_key=True)
    up_to: Mapped[int] = mapped_column(BigInteger)
    """Position of the last message that the summary knows."""
    text: Mapped[str] = mapped_column(Text)
    model: Mapped[str] = mapped_column(Text)
    """Who wrote it."""
    written_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
