"""Mail, chats and resources with their full-text index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# An external content table: FTS5 keeps the words, `resource_index` the text. Triggers as in
# https://www.sqlite.org/fts5.html, section 4.4.3. Accents count, as for
# PostgreSQL's `simple`.
_FTS5 = (
    "CREATE VIRTUAL TABLE resource_terms USING fts5("
    "terms, content='resource_index', content_rowid='id', tokenize='unicode61 remove_diacritics 0')",
    "CREATE TRIGGER resource_index_inserted AFTER INSERT ON resource_index BEGIN "
    "INSERT INTO resource_terms (rowid, terms) VALUES (new.id, new.terms); END",
    "CREATE TRIGGER resource_index_deleted AFTER DELETE ON resource_index BEGIN "
    "INSERT INTO resource_terms (resource_terms, rowid, terms) VALUES ('delete', old.id, old.terms); END",
    "CREATE TRIGGER resource_index_updated AFTER UPDATE ON resource_index BEGIN "
    "INSERT INTO resource_terms (resource_terms, rowid, terms) VALUES ('delete', old.id, old.terms); "
    "INSERT INTO resource_terms (rowid, terms) VALUES (new.id, new.terms); END",
)


def upgrade() -> None:
    """Apply."""
    _create_mail()
    _create_chats()
    _create_resources()
    _create_index()


def downgrade() -> None:
    """Take back."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE resource_terms")  # the triggers go with the table they watch
    for table in ("resource_index", "resources", "chat_summaries", "chat_messages", "chats"):
        op.drop_table(table)
    for table in ("events", "email_templates", "users"):
        op.drop_table(table)


def _create_mail() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
    )
    op.create_table(
        "email_templates",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_email_templates")),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )


def _create_chats() -> None:
    op.create_table(
        "chats",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chats")),
    )
    op.create_table(
        "chat_messages",
        sa.Column("chat_id", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("chat_id", "position", name=op.f("pk_chat_messages")),
        sa.CheckConstraint("position > 0", name=op.f("ck_chat_messages_position")),
    )
    op.create_table(
        "chat_summaries",
        sa.Column("chat_id", sa.Text, nullable=False),
        sa.Column("up_to", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("chat_id", name=op.f("pk_chat_summaries")),
    )


def _create_resources() -> None:
    op.create_table(
        "resources",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resources")),
        sa.CheckConstraint("version > 0", name=op.f("ck_resources_version")),
    )


def _create_index() -> None:
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.create_table(
        "resource_index",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("resource_id", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("terms", TSVECTOR().with_variant(sa.Text, "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_index")),
        sa.UniqueConstraint("resource_id", name=op.f("uq_resource_index_resource_id")),
    )
    if not is_sqlite:
        op.create_index(op.f("ix_resource_index_terms"), "resource_index", ["terms"], postgresql_using="gin")
        return
    for statement in _FTS5:
        op.execute(statement)
