"""Who publishes a row at once when its transaction was committed? A thread of the process that wrote it.

It is told ids, in a hook that neither blocks nor raises, and believes none of them: SQLAlchemy calls the hook
at savepoints too, and for sessions that share an outer transaction. It reads the rows on a connection of its
own. One that it cannot see is not committed; it looks a few times more, and what is committed later is the
relay's.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ...store import Store
from ...store.tables import CLAIM_SECONDS
from ...transport.enqueueing import EnqueueingBroker
from ...transport.submission import Submission
from .. import submissions
from . import rows
from .backlog import Backlog
from .forwarder import Forwarder
from .forwarding import MOST_A_QUEUE

_BATCH: Final = 500
_MOST_REMEMBERED: Final = 50_000
_FIRST_LOOK_SECONDS: Final = 0.05


class AfterCommit(Forwarder):
    """Publishes the rows that this process writes.

    Parameters:
        store: where the outbox is.
        broker: publishes.
        owner: by whom the rows were born claimed.
        backlog: counted from time to time.
    """

    def __init__(self, store: Store, broker: EnqueueingBroker, owner: str, backlog: Backlog) -> None:
        super().__init__("jobs-outbox", store, broker, owner, removed=backlog.leave)
        self._backlog = backlog
        self._wants_count = False
        self._freed: deque[tuple[Submission, str]] = deque()
        self._new: deque[UUID] = deque()
        self._unseen: list[tuple[float, float, list[UUID]]] = []
        """A heap: when to look again, at how long a pause, for which ids."""

    @property
    def is_idle(self) -> bool:
        """Whether it has done all that it was told of, and published what it saw."""
        return not (self._new or self._freed) and super().is_idle

    def committed(self, ids: Sequence[UUID]) -> None:
        """Be told of rows that may have been committed; from any thread, never blocks."""
        self.tell(lambda: self._remember(ids))

    def count(self) -> None:
        """Be asked to count; from any thread, never blocks."""
        self.tell(self._want_count)

    def free(self, submission: Submission, message_id: str) -> None:
        """Be asked to free a `job_id`; from any thread, never blocks."""
        self.tell(lambda: self._freed.append((submission, message_id)))

    def _want_count(self) -> None:
        self._wants_count = True

    def _remember(self, ids: Sequence[UUID]) -> None:
        self._wants_count = True
        self._new.extend(ids[: max(0, _MOST_REMEMBERED - len(self._new))])  # the relay finds the others

    def feed(self) -> float:
        """Read and publish the next rows, and free ids."""
        while self._freed:
            with self.store.stateless() as connection:
                submissions.end(connection, *self._freed[0])
            self._freed.popleft()
        if self._wants_count and not self._backlog.seconds_left():
            with self.store.stateless() as connection:
                self._backlog.count(connection)
            self._wants_count = False
        room = MOST_A_QUEUE - len(self.forwarding)
        if room > 0:
            self._look_again()
            self._look_at_new(min(_BATCH, room))
        return self._seconds_until_next(is_full=room <= 0)

    def _seconds_until_next(self, *, is_full: bool) -> float:
        if self._new and not is_full:
            return 0.0
        count = self._backlog.seconds_left() if self._wants_count else float("inf")
        look = self._unseen[0][0] - time.monotonic() if self._unseen and not is_full else float("inf")
        return max(0.0, min(count, look))

    def _look_at_new(self, most: int) -> None:
        ids = [self._new[index] for index in range(min(most, len(self._new)))]
        if ids:
            self._look(ids, _FIRST_LOOK_SECONDS)
            for _ in ids:  # after the look, which fails if the database does not answer
                self._new.popleft()

    def _look_again(self) -> None:
        if self._unseen and self._unseen[0][0] <= time.monotonic():
            _, pause, ids = self._unseen[0]
            self._look(ids, 2 * pause)
            heapq.heappop(self._unseen)

    def _look(self, ids: list[UUID], pause: float) -> None:
        with self.store.stateless() as connection:
            found = rows.read_own(connection, ids, self.owner)
        self.forwarding.begin(found)
        seen = {row.id for row in found}
        missing = [each for each in ids if each not in seen]
        if missing and pause < CLAIM_SECONDS:
            heapq.heappush(self._unseen, (time.monotonic() + pause, pause, missing))
