"""Where do jobs live when there is no server? Queues in this process's memory, for the inline broker."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dramatiq.broker import Consumer, MessageProxy

from .incoming import incoming
from .ladder import TICK
from .publication import DEAD, DELAYED, Publication, Result, Ticket
from .queues import Queue
from .sending import Countdown
from .settlement import Settlement


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter: the job's bytes and, in `headers`, why it died."""

    queue: str
    body: bytes
    headers: dict[str, Any] = field(default_factory=dict)


class Memory:
    """Takes publications and keeps them until they are settled; takes the publisher's place."""

    problem = ""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.ready: defaultdict[str, deque[Publication]] = defaultdict(deque)
        self.active: defaultdict[str, dict[int, Publication]] = defaultdict(dict)
        self.dead: defaultdict[str, list[DeadLetter]] = defaultdict(list)
        self._delayed: list[tuple[float, int, Publication]] = []
        self._numbers = itertools.count(1)

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Store publications and confirm them."""
        with self.changed:
            for ticket in tickets:
                self._store(ticket.publication)
            self.changed.notify_all()
        for ticket in tickets:
            if ticket.claimed.acquire(blocking=False):
                ticket.end(Result.CONFIRMED)

    def drive(self, tickets: Sequence[Ticket], countdown: Countdown, patience: float) -> bool:
        """Store publications: there is nothing to wait for."""
        self.submit(tickets)
        return True

    def _store(self, publication: Publication) -> None:
        if publication.place == DEAD:
            self.dead[publication.queue].append(
                DeadLetter(publication.queue, publication.body, dict(publication.headers))
            )
        elif publication.place == DELAYED:
            due = time.monotonic() + publication.ticks * TICK.total_seconds()
            heapq.heappush(self._delayed, (due, next(self._numbers), publication))
        else:
            self.ready[publication.queue].append(publication)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Run a callable after a while."""
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """Nothing to close."""

    def take(self, queue: Queue, seconds: float) -> tuple[int, Publication] | None:
        """Take the next publication of a queue, unless as many as its prefetch are active."""
        give_up = time.monotonic() + seconds
        with self.changed:
            while True:
                self._release_due()
                ready, active = self.ready[queue.name], self.active[queue.name]
                if ready and len(active) < queue.prefetch:
                    tag = next(self._numbers)
                    active[tag] = publication = ready.popleft()
                    return tag, publication
                now = time.monotonic()
                if now >= give_up:
                    return None
                next_due = self._delayed[0][0] if self._delayed else give_up
                self.changed.wait(max(0.0, min(give_up, next_due) - now))

    def _release_due(self) -> None:
        now = time.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            publication = heapq.heappop(self._delayed)[2]
            self.ready[publication.queue].append(publication)
            self.changed.notify_all()

    def release_delayed(self) -> None:
        """Let all that wait for their time be due now: for tests, which do not wait."""
        with self.changed:
            self._delayed = [(0.0, number, publication) for _due, number, publication in self._delayed]
            heapq.heapify(self._delayed)
            self._release_due()

    def delayed_count(self, queue: str) -> int:
        """Return how many of a queue's jobs wait for their time."""
        with self.changed:
            return sum(publication.queue == queue for _due, _number, publication in self._delayed)

    def open_count(self, queue: str) -> int:
        """Return how many of a queue's jobs have not ended; call it with `changed` held."""
        delayed = sum(publication.queue == queue for _due, _number, publication in self._delayed)
        return len(self.ready[queue]) + len(self.active[queue]) + delayed

    def wait_until_done(self, queues: Iterable[str], seconds: float | None) -> bool:
        """Return whether all jobs of these queues ended in time."""
        names = list(queues)
        with self.changed:
            return self.changed.wait_for(lambda: not any(self.open_count(name) for name in names), seconds)


class MemoryLink:
    """The settling side of one queue's deliveries; always alive, it ends with the process."""

    alive = True

    def __init__(self, memory: Memory, queue: str) -> None:
        self._memory = memory
        self._queue = queue

    def _settle(self, tag: int, after: Callable[[Publication], None]) -> None:
        with self._memory.changed:
            publication = self._memory.active[self._queue].pop(tag, None)
            if publication is not None:
                after(publication)
            self._memory.changed.notify_all()

    def ack(self, tag: int) -> None:
        """Remove a delivery from its queue."""
        self._settle(tag, lambda publication: None)

    def requeue(self, tag: int) -> None:
        """Give a delivery back to the head of its queue."""
        self._settle(tag, self._memory.ready[self._queue].appendleft)

    def reject(self, tag: int) -> None:
        """Make a dead letter without evidence of it."""
        dead = self._memory.dead[self._queue]
        self._settle(tag, lambda publication: dead.append(DeadLetter(self._queue, publication.body)))


class MemoryConsumer(Consumer):
    """Iterates over a queue's deliveries for Dramatiq's consumer thread.

    Parameters:
        memory: holds the queue.
        queue: the queue and its prefetch.
        settlement: carries out outcomes.
        knows_actor: whether an actor of that name is declared.
        idle_ms: `__next__` returns None at least this often.
    """

    def __init__(
        self,
        memory: Memory,
        queue: Queue,
        settlement: Settlement,
        knows_actor: Callable[[str], bool],
        idle_ms: int,
    ) -> None:
        self._memory = memory
        self._queue = queue
        self._settlement = settlement
        self._knows_actor = knows_actor
        self._idle_seconds = idle_ms / 1000
        self._link = MemoryLink(memory, queue.name)
        self._draining = threading.Event()

    def __next__(self) -> MessageProxy | None:
        """Return the next delivery, None when nothing came for a while."""
        if self._draining.is_set():
            threading.Event().wait(self._idle_seconds)
            return None
        taken = self._memory.take(self._queue, self._idle_seconds)
        if taken is None:
            return None
        tag, publication = taken
        if self._draining.is_set():
            self._link.requeue(tag)
            return None
        return incoming(
            publication.body,
            publication.headers,
            queue=self._queue.name,
            message_id=publication.message_id,
            link=self._link,
            tag=tag,
            settlement=self._settlement,
            knows_actor=self._knows_actor,
        )

    def ack(self, message: MessageProxy) -> None:
        """Carry out the delivery's stored outcome, whatever Dramatiq called this for. Never raises."""
        self._settlement.settle(message)  # type: ignore[arg-type]  # this consumer yields deliveries only

    nack = ack

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Give back deliveries that no thread has started."""
        for message in messages:
            message.link.requeue(message.tag)

    def drain(self) -> None:
        """Take no more deliveries."""
        self._draining.set()
