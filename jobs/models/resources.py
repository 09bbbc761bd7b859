"""Resources change and can be found by what they say."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Index, Integer, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class Resource(Base):
    """A text in its current version; each change counts the version up."""

    __tablename__ = "resources"
    __table_args__ = (CheckConstraint("version > 0", name="version"),)

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger)
    title: Mapped[str] = mapped_column(Text)
    body: Mapped[str] = mapped_column(Text)


class ResourceEntry(Base):
    """What the full-text index knows of a resource.

    On SQLite the words themselves are in `resource_terms`, an FTS5 table that triggers keep in step with this
    one; the migration declares both.
    """

    __tablename__ = "resource_index"
    __table_args__ = (
        UniqueConstraint("resource_id"),
        Index(None, "terms", postgresql_using="gin").ddl_if(dialect="postgresql"),
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    """Names the entry to FTS5, whose rows have numbers only."""
    resource_id: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(BigInteger)
    """The version that was indexed."""
    terms: Mapped[str] = mapped_column(TSVECTOR().with_variant(Text, "sqlite"))
    """The words and where they stand; on SQLite one text of them."""
