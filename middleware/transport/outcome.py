"""How can one delivery of a job end? A closed set; exactly one per delivery.

The outcome is decided in the worker thread and stored on the delivery; settlement acts on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Completed:
    """The actor returned and its effect is safe."""

    name = "completed"


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The ledger already holds the key: nothing ran, nothing follows."""

    name = "duplicate"


@dataclass(frozen=True, slots=True)
class Discarded:
    """The job is free of effect and is dropped without a dead letter."""

    name = "discarded"


@dataclass(frozen=True, slots=True)
class Returned:
    """The job goes back to its queue untouched: shut down or paused before it ran, or interrupted."""

    name = "returned"


@dataclass(frozen=True, slots=True)
class Retry:
    """The attempt failed and is worth another one after `delay`."""

    kind: str
    error: BaseException
    delay: timedelta
    exact: bool = False
    """Whether somebody asked for this very delay; computed backoffs may be rounded up."""
    name = "retry"


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Not now: the job comes back after `delay` and no attempt is used."""

    delay: timedelta
    reason: str = ""
    name = "snoozed"


@dataclass(frozen=True, slots=True)
class Dead:
    """The job cannot succeed: it becomes a dead letter with its evidence."""

    kind: str
    error: BaseException | None
    reason: str = ""
    name = "dead"


Outcome: TypeAlias = Completed | Duplicate | Discarded | Returned | Retry | Snoozed | Dead

COMPLETED: Final = Completed()
DUPLICATE: Final = Duplicate()
DISCARDED: Final = Discarded()
RETURNED: Final = Returned()
FAILED_BY_MIDDLEWARE: Final = Dead("unexpected", None, "failed by a middleware before it ran")
