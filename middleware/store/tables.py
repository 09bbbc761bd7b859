"""Which tables does the library keep? Core tables: the hot path runs no ORM."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    Uuid,
    func,
)

from .clock import Clock

CLAIM_SECONDS: Final = 5.0
"""How long whoever has claimed a row of the outbox has for it before somebody else may take it."""

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

job_outbox = Table(
    "job_outbox",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("message_id", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("enqueued_at", DateTime(timezone=True), nullable=False),
    Column("due_at", DateTime(timezone=True), nullable=False),
    Column("claimed_by", Text, nullable=False),
    Column("claimed_until", DateTime(timezone=True), nullable=False, default=Clock(CLAIM_SECONDS)),
    Column("refusals", Integer, nullable=False, server_default="0"),
    Column("problem", Text),
    Index("ix_job_outbox_claimed_until", "claimed_until"),
    comment="Jobs that were committed with what they follow from, until the broker has confirmed them.",
)
"""Jobs on their way from a transaction to the broker; empty when all is well.

`enqueued_at` and `due_at` are by the clock of who enqueued, as in every message; `claimed_until` is by the
database's. `problem` says why the broker does not have a row yet, if that is known.
"""

job_submissions = Table(
    "job_submissions",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("mode", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("running", Text),
    Column("outbox_id", Uuid, nullable=False),
    Column("window_until", DateTime(timezone=True)),
    Column("seen_at", DateTime(timezone=True), nullable=False),
    Column("ending_at", DateTime(timezone=True)),
    comment="One row for each job_id that is taken: which message carries its job.",
)
"""Jobs that were submitted under a `job_id`, until they have ended.

`message_id` is of the submission that was accepted last, `running` of the one that runs in mode `keep_last`.
`seen_at` is when the job was last heard of, or will be due; `ending_at` when it became a dead letter that the
broker has not confirmed yet. The rows of `replace` and `keep_last` outlive their jobs by as long as an older
submission may still arrive: they hold the generation that it is compared with.
"""

job_maintenance = Table(
    "job_maintenance",
    metadata,
    Column("process", Text, primary_key=True),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("seen_at", DateTime(timezone=True), nullable=False),
    comment="One row for each process that does the maintenance, updated every few seconds.",
)
"""Who does the maintenance; see `effects/presence.py`."""

job_watermark = Table(
    "job_watermark",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1", name="ck_job_watermark_id"), primary_key=True),
    Column("watermark", DateTime(timezone=True), nullable=False),
    Column("raised_at", DateTime(timezone=True)),
    Column("pruned_at", DateTime(timezone=True)),
    comment="One row, once the ledger was pruned: keys of jobs enqueued before may have been forgotten.",
)
"""From when on the ledger remembers; see `effects/watermark.py`.

`raised_at` is a moment at which the watermark was already committed, None until somebody has seen that it is;
`pruned_at` is when all rows were deleted that it allows to delete, None until then.
"""
