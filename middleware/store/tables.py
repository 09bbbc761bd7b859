"""Which tables does the library keep? Core tables: the hot path runs no ORM."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, LargeBinary, MetaData, Table, Text, func

metadata = MetaData()
"""The library's tables; the application's are its own."""

job_ledger = Table(
    "job_ledger",
    metadata,
    Column("key", Text, primary_key=True),
    Column("args_hash", LargeBinary, nullable=False),
    Column("actor", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    comment="One row for each idempotency key that is spent, written in the commit of its job's effect.",
)
"""Spent idempotency keys; a row and its index entry take about 200 bytes.

One plain table, on purpose: partitioned by time it could not enforce the key, because its unique
constraint would have to contain the time.
"""

job_intents = Table(
    "job_intents",
    metadata,
    Column("key", Text, primary_key=True),
    Column("fence", BigInteger, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("args_hash", LargeBinary, nullable=False),
    Column("actor", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("began_at", DateTime(timezone=True), nullable=False),
    Column("lease_until", DateTime(timezone=True), nullable=False),
    Column("asked_at", DateTime(timezone=True)),
    Column("ended_at", DateTime(timezone=True)),
    Column("reason", Text),
    Column("result", Text),
    comment="One row for each attempt at an effect outside the database, committed before its call.",
)
"""Attempts at effects that no transaction can take back, numbered per key by their fencing token.

`state` is `held` (by `holder`, until `lease_until`), `released` (nothing happened), `unknown` (something may
have) or `confirmed`. What makes a key spent is its row in the ledger. `asked_at` is when the actor asked for
the key, just before its call.
"""
