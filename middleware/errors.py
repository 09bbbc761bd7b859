"""Which exceptions the kit raises, and which ones an actor raises to say what its failure means.

::

    JobsError
    ├── ConfigurationError      a setting is wrong                        (also a ValueError)
    ├── DeclarationError        an actor or queue is declared wrongly     (also a MiddlewareError, ValueError)
    ├── TopologyError           the broker holds something else than the kit declares
    └── EnqueueError            the one family that `send()` raises
        ├── NotEnqueued         certainly not stored: safe to send again
        │   ├── PayloadError    an argument must not travel               (also a ValueError)
        │   ├── OutboxFull      too many jobs wait in the outbox
        │   └── UnknownQueue    no such queue is declared                 (also a QueueNotFound)
        └── EnqueueUnknown      may be stored: repeat only with an idempotency key

    JobFailure                  raised inside an actor
    ├── Invalid                 the input is wrong: never retried
    ├── BusinessReject          a business rule says no: never retried
    ├── KeyConflict             the same key with other arguments: never retried
    ├── LedgerViolation         the actor broke the ledger's transaction
    ├── NotDone                 the call outside the database did nothing: retried
    ├── UnknownOutcome          nobody knows whether it did something
    ├── Unprovable              nobody can say any more whether the job has been done: never retried
    └── Snooze                  not now: comes back later, no attempt used
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from dramatiq import Message
from dramatiq.errors import QueueNotFound
from dramatiq.middleware import MiddlewareError


class JobsError(Exception):
    """Base of everything the kit itself raises."""


class ConfigurationError(JobsError, ValueError):
    """A setting is missing or wrong; the text names it, the rule and the way out."""


class DeclarationError(JobsError, MiddlewareError, ValueError):
    """An actor or a queue is declared wrongly.

    A `MiddlewareError`, because Dramatiq swallows everything else that a declaration hook raises.
    """


class TopologyError(JobsError):
    """The broker holds a queue or a policy that contradicts what the kit declares."""


class EnqueueError(JobsError):
    """Base of what `send()` and `enqueue_many()` raise when they cannot say that every job is stored.

    Attributes:
        refused: the messages that are certainly not stored.
        unknown: the messages that may be stored or not.
    """

    def __init__(
        self,
        text: str,
        *,
        refused: Sequence[Message[Any]] = (),
        unknown: Sequence[Message[Any]] = (),
    ) -> None:
        super().__init__(text)
        self.refused = list(refused)
        self.unknown = list(unknown)


class NotEnqueued(EnqueueError):
    """The job is certainly not stored: sending it again cannot run it twice."""


class EnqueueUnknown(EnqueueError):
    """The job may or may not be stored: repeat the send only if its actor has an idempotency key."""


class PayloadError(NotEnqueued, ValueError):
    """An argument must not travel in a message: not plain JSON, too large, or no use as a key field."""


class OutboxFull(NotEnqueued):
    """Too many jobs wait in the outbox: the broker has been away for long, or nobody runs the maintenance."""


class UnknownQueue(NotEnqueued, QueueNotFound):
    """No queue of that name is declared."""

    def __init__(self, text: str) -> None:
        NotEnqueued.__init__(self, text)
        self.message = text  # what Dramatiq's own class prints


class JobFailure(Exception):
    """Base of what an actor raises to say what its failure means."""


class Invalid(JobFailure):
    """The job's input is wrong and stays wrong: dead-lettered at once, kind `invalid`."""


class BusinessReject(JobFailure):
    """A business rule refuses the job: dead-lettered at once, kind `rejected`."""


class KeyConflict(JobFailure):
    """The idempotency key was spent by a job with other arguments: dead-lettered, kind `key_conflict`."""


class LedgerViolation(JobFailure):
    """The actor ended, replaced or broke the transaction that holds its ledger row."""


class NotDone(JobFailure):
    """The call of an actor with `effect="external"` certainly did nothing: the job is retried."""


class UnknownOutcome(JobFailure):
    """An effect outside the database may have taken place: dead-lettered, kind `unknown_outcome`.

    Parameters:
        text: what is known.
        is_retried: whether the provider can be asked again later; only then is the job retried before that.
    """

    def __init__(self, text: str, *, is_retried: bool = False) -> None:
        super().__init__(text)
        self.is_retried = is_retried


class Unprovable(JobFailure):
    """Rows of jobs as old as this one are pruned from the ledger: dead-lettered, kind `unprovable`."""


class Snooze(JobFailure):
    """Not now: the job comes back after `delay` and no attempt is used.

    Parameters:
        delay: how long to wait, a timedelta above zero.
        reason: one line for the log.
    """

    def __init__(self, delay: timedelta, reason: str = "") -> None:
        if delay <= timedelta(0):
            raise ValueError(f"expected delay to be above zero, got: {delay!r}")
        super().__init__(reason or f"snoozed for {delay}")
        self.delay = delay
