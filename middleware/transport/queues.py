"""What is a queue, as a team declares it?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from ..errors import DeclarationError

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9._-]*")
_RESERVED = re.compile(r"\.(XQ|DQ|delay.*)$")
_LONGEST_NAME = 200  # AMQP allows 255 bytes; the ladder's names are longer than the queue's.


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue and its production defaults.

    Parameters:
        name: letters, digits, `.`, `_` and `-`; endings `.XQ`, `.DQ` and `.delay…` are reserved.
        prefetch: how many of the queue's jobs one worker process holds, running and waiting, at most.
            It bounds what a process holds and is no rate limit. Defaults to 16.
        delivery_limit: after how many deliveries the broker itself dead-letters a job: the last safety
            net, far above any cap of the kit, because every drain counts. Defaults to 1000.
        time_limit: the longest an actor on this queue may run. Defaults to 2 minutes.
        wait_limit: how long a job may wait in the queue, all its attempts together and outages included,
            before that is more than the ledger reckons with. Defaults to 1 day.
        serial: strictest order: a single active consumer, one job at a time, first in first out; prefetch
            is 1 then. Defaults to False.

    Raises:
        DeclarationError: a value is out of range or the name is reserved.
    """

    name: str
    prefetch: int = 16
    delivery_limit: int = 1000
    time_limit: timedelta = timedelta(minutes=2)
    wait_limit: timedelta = timedelta(days=1)
    serial: bool = False

    def __post_init__(self) -> None:
        if self.serial:
            object.__setattr__(self, "prefetch", 1)
        self._require(
            _NAME.fullmatch(self.name) is not None,
            "name",
            "a letter or underscore, then letters, digits, '.', '_' or '-'",
        )
        self._require(len(self.name) <= _LONGEST_NAME, "name", f"at most {_LONGEST_NAME} characters")
        self._require(
            _RESERVED.search(self.name) is None,
            "name",
            "free of the reserved endings .XQ, .DQ and .delay… (the kit's own queues); choose another name",
        )
        self._require(1 <= self.prefetch <= 65535, "prefetch", "between 1 and 65535")
        self._require(
            20 <= self.delivery_limit <= 1_000_000,
            "delivery_limit",
            "between 20 and 1,000,000 (drains, pauses and crashes of neighbours count towards it)",
        )
        self._require(self.time_limit > timedelta(0), "time_limit", "a timedelta above zero")
        self._require(self.wait_limit > timedelta(0), "wait_limit", "a timedelta above zero")

    def _require(self, holds: bool, field: str, rule: str) -> None:
        if not holds:
            raise DeclarationError(
                f"queue {self.name!r}: expected {field} to be {rule}, got: {getattr(self, field)!r}"
            )
