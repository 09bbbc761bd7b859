"""Users are told by email what happened."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Text
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class User(Base):
    """Who is told."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    address: Mapped[str] = mapped_column(Text)
    """Where email goes, `name@domain`."""
    name: Mapped[str] = mapped_column(Text)


class EmailTemplate(Base):
    """What an email says; `$name` stands for the user's name, other `$words` for the event's values."""

    __tablename__ = "email_templates"

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    subject: Mapped[str] = mapped_column(Text)
    body: Mapped[str] = mapped_column(Text)


class Event(Base):
    """What happened, written by the product before it sends the job that tells of it."""

    __tablename__ = "events"

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    details: Mapped[dict[str, Any]] = mapped_column(JSON)
    """What templates can name: texts and numbers by name."""
