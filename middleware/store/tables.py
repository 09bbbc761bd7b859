"""Which tables does the library keep? Core tables: the hot path runs no ORM."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, LargeBinary, MetaData, Table, Text, func

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
