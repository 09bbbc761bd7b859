"""What does the ledger write down about a job, and how long does it wait for others?"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A row of the ledger.

    Attributes:
        key: the idempotency key.
        args_hash: of all arguments; see `args_hash`.
        actor: who did it.
        message_id: of the job; `direct` for a call that no message asked for.
    """

    key: str
    args_hash: bytes
    actor: str
    message_id: str


class Limits(NamedTuple):
    """How long a transaction may be held up, in whole milliseconds as the databases take them.

    Attributes:
        wait_ms: for a twin, or for the turn to write.
        idle_ms: between two statements before the database ends the transaction.
    """

    wait_ms: int
    idle_ms: int
