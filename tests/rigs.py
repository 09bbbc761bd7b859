"""What can a contract test ask of either broker? The same of RabbitMQ and of this process's memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dramatiq import Worker

from middleware import DeadLetter, InlineBroker, QuorumBroker
from middleware.transport.broker import JobBroker
from middleware.transport.publication import READY, Publication, Ticket

from .brokers import (
    QUEUE,
    SHORTER_LADDER,
    build_inline_broker,
    build_quorum_broker,
    start_worker,
    stop_worker,
)
from .rabbit import Rabbit
from .waiting import wait_until


class Rig(ABC):
    """A broker, a worker once it is started, and a look into both."""

    broker: JobBroker

    @abstractmethod
    def start(self) -> None:
        """Begin to run jobs; all actors are declared by now."""

    @abstractmethod
    def stop(self) -> None:
        """Stop running jobs."""

    def close(self) -> None:
        """Stop running jobs and close the broker."""
        self.stop()
        self.broker.close()

    @abstractmethod
    def put(self, body: bytes, queue: str = QUEUE) -> None:
        """Put bytes into a queue as another client of the server may, or as a bug would."""

    @abstractmethod
    def dead_letters(self, queue: str = QUEUE) -> list[DeadLetter]:
        """Return a queue's dead letters, oldest first."""

    @abstractmethod
    def unfinished(self, queue: str = QUEUE) -> int:
        """Return how many jobs wait, now or delayed; those that run come back to the count with `stop`."""

    def wait_for_dead_letters(self, count: int = 1, queue: str = QUEUE) -> list[DeadLetter]:
        """Wait until there are so many dead letters; more are a failure."""
        wait_until(lambda: len(self.dead_letters(queue)) >= count, what=f"{count} dead letters")
        found = self.dead_letters(queue)
        assert len(found) == count, f"expected {count} dead letters, got: {found}"
        return found

    def assert_nothing_left(self, queue: str = QUEUE, *, dead: int = 0) -> None:
        """Stop, and check that every job has ended in one way."""
        self.stop()
        assert self.unfinished(queue) == 0
        assert len(self.dead_letters(queue)) == dead


class QuorumRig(Rig):
    """RabbitMQ, with Dramatiq's worker in this process."""

    broker: QuorumBroker

    def __init__(self, rabbit: Rabbit, **options: Any) -> None:
        self._rabbit = rabbit
        self.broker = build_quorum_broker(rabbit.url, **options)
        self._worker: Worker | None = None

    def start(self) -> None:
        self._worker = start_worker(self.broker)

    def stop(self) -> None:
        if self._worker is not None:
            stop_worker(self._worker)

    def put(self, body: bytes, queue: str = QUEUE) -> None:
        self._rabbit.publish(queue, body)

    def dead_letters(self, queue: str = QUEUE) -> list[DeadLetter]:
        return [
            DeadLetter(queue, letter.body, dict(letter.headers))
            for letter in self._rabbit.letters(f"{queue}.XQ")
        ]

    def unfinished(self, queue: str = QUEUE) -> int:
        names = [name for name in self._rabbit.queue_names() if name.startswith((f"{queue}.delay", queue))]
        return sum(self._rabbit.ready(name) for name in names if not name.endswith(".XQ"))


class InlineRig(Rig):
    """This process's memory."""

    broker: InlineBroker

    def __init__(self, **options: Any) -> None:
        self.broker = build_inline_broker(**options)

    def start(self) -> None:
        pass  # the first job starts the worker

    def stop(self) -> None:
        self.broker.close()

    def put(self, body: bytes, queue: str = QUEUE) -> None:
        ticket = Ticket(Publication(queue, READY, body, message_id=""), lambda ticket: None)
        self.broker._memory.submit([ticket])

    def dead_letters(self, queue: str = QUEUE) -> list[DeadLetter]:
        return self.broker.dead_letters(queue)

    def unfinished(self, queue: str = QUEUE) -> int:
        counts = self.broker.queue_counts(queue)
        return (counts.waiting or 0) + (counts.active or 0) + (counts.delayed or 0)


def build_rig(rabbit: Rabbit | None, **options: Any) -> Rig:
    """Return a rig on a virtual host, or without a server if there is none; no delay is longer than 3 s."""
    options.setdefault("max_delay", SHORTER_LADDER)
    return QuorumRig(rabbit, **options) if rabbit is not None else InlineRig(**options)
