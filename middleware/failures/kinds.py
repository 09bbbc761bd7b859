"""What kinds of error are there, and which of them are worth another attempt? A closed set."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What went wrong, as metrics, logs and dead letters name it."""

    TRANSIENT = "transient"
    """Network, lost connection, deadlock: the same attempt may succeed later."""
    TIMEOUT = "timeout"
    """The job ran into its time limit."""
    UNEXPECTED = "unexpected"
    """An exception that no rule knows."""
    INVALID = "invalid"
    """The input is wrong and stays wrong."""
    REJECTED = "rejected"
    """A business rule says no."""
    PERMANENT = "permanent"
    """The actor declared the exception in `throws`."""
    KEY_CONFLICT = "key_conflict"
    """The idempotency key was spent with other arguments."""
    UNKNOWN_OUTCOME = "unknown_outcome"
    """An effect outside the database may have taken place or not."""
    UNPROVABLE = "unprovable"
    """The job is older than what the ledger remembers: it may have been done or not."""
    EXPIRED = "expired"
    """The job waited longer than its `max_age`."""
    UNDECODABLE = "undecodable"
    """The body is not a message."""
    UNKNOWN_ACTOR = "unknown_actor"
    """No actor of that name is declared in the worker."""

    @property
    def is_retried(self) -> bool:
        """Whether another attempt can help."""
        return self in _RETRIED


_RETRIED = {Kind.TRANSIENT, Kind.TIMEOUT, Kind.UNEXPECTED}
