"""What does one test get to itself? A virtual host, a migrated database, and workers that know only these."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from dramatiq import Message

from jobs.queues import QUEUES
from middleware import QuorumBroker

from ..rabbit import Rabbit
from ..waiting import wait_until
from .maintaining import Maintenance
from .seen import Gates, Seen
from .surroundings import surroundings
from .workers import Worker

_ROUNDS: Final = 5


@dataclass(frozen=True)
class DeadLetter:
    """A probe's message in a dead-letter queue.

    Attributes:
        name: the probe's.
        headers: why it died.
    """

    name: str
    headers: Mapping[str, Any]


class Deployment:
    """One test's broker, database, workers and sender.

    Parameters:
        rabbit: the test's virtual host.
        database_url: the test's database, migrated.
        folder: the test's files.
    """

    def __init__(self, rabbit: Rabbit, database_url: str, folder: Path) -> None:
        self.rabbit = rabbit
        self.database_url = database_url
        self.folder = folder
        self.seen = Seen(folder)
        self.gates = Gates(folder)
        self.workers: list[Worker] = []
        self.maintenance: list[Maintenance] = []
        self.senders: list[QuorumBroker] = []
        self.sender = self.make_sender()

    def environment(self, **settings: str) -> dict[str, str]:
        """Return what a command of this deployment is told; `settings` are added or replace others."""
        own = {
            "JOBS_BROKER_URL": self.rabbit.url,
            "JOBS_DATABASE_URL": self.database_url,
            "JOBS_MANAGEMENT_URL": self.rabbit.management_url,
            "PROBE_FOLDER": str(self.folder),
        }
        return surroundings(**(own | settings))

    # --- running ---

    def start(self, *, settings: Mapping[str, str] | None = None, **options: Any) -> Worker:
        """Start a worker; see `Worker` for the options."""
        log = self.folder / f"worker-{len(self.workers) + 1}.log"
        worker = Worker(self.environment(**(settings or {})), log, **options)
        self.workers.append(worker)
        return worker

    def maintain(self) -> Maintenance:
        """Start a maintenance process and wait until it works."""
        log = self.folder / f"maintenance-{len(self.maintenance) + 1}.log"
        self.maintenance.append(Maintenance(self.environment(), log))
        return self.maintenance[-1].wait_ready()

    def work_off(self, queue: str = "critical") -> None:
        """Run workers, one after the other, until a queue and its ladder are empty, dead letters apart."""
        for _ in range(_ROUNDS):
            worker = self.start(queues=[queue]).wait_ready()
            wait_until(lambda: not self.open(queue), what=f"{queue} to run empty", seconds=60)
            worker.stop()
            if not self.open(queue):  # what a thread had not begun when it was stopped is back
                return
        raise AssertionError(f"expected {queue} to run empty, got: {self.waiting(queue)}")

    def make_sender(self, **options: Any) -> QuorumBroker:
        """Return a broker to send with, that knows no actor's code; see `QuorumBroker` for the options."""
        sender = QuorumBroker(self.rabbit.url, queues=QUEUES, middleware=[], **options)
        self.senders.append(sender)
        return sender

    def send(self, *messages: Message[Any], delay: timedelta | None = None) -> None:
        """Send jobs to this deployment's broker."""
        delay_ms = None if delay is None else delay // timedelta(milliseconds=1)
        self.sender.enqueue_many(messages, delay_ms=delay_ms)

    def close(self) -> None:
        """End what this deployment started."""
        for worker in self.workers:
            worker.kill()
        for maintenance in self.maintenance:
            maintenance.kill()
        for sender in self.senders:
            sender.close()

    # --- looking ---

    def waiting(self, queue: str = "critical") -> dict[str, int]:
        """Return the ready messages of a queue, its ladder and its dead letters, without the empty ones."""
        names = [name for name in self.rabbit.queue_names() if name == queue or name.startswith(f"{queue}.")]
        with self.rabbit.channel() as channel:
            counts = {
                name: int(channel.queue_declare(name, passive=True).method.message_count) for name in names
            }
        return {name: count for name, count in counts.items() if count}

    def open(self, queue: str = "critical") -> int:
        """Return how many jobs of a queue are ready or wait for their time."""
        return sum(count for name, count in self.waiting(queue).items() if not name.endswith(".XQ"))

    def dead_letters(self, queue: str = "critical") -> list[DeadLetter]:
        """Return a queue's dead letters and leave them there."""
        letters = self.rabbit.letters(f"{queue}.XQ")
        return [DeadLetter(json.loads(letter.body)["args"][0], letter.headers) for letter in letters]

    def wait_for_dead_letter(self) -> DeadLetter:
        """Wait until `critical` has a dead letter, and return it; more are a failure."""
        wait_until(lambda: self.rabbit.ready("critical.XQ") > 0, what="a dead letter")
        (letter,) = self.dead_letters()
        return letter


def probe(
    name: str, *, queue: str = "critical", options: Mapping[str, Any] | None = None, **behaviour: Any
) -> Message[Any]:
    """Return the message of a probe; see `probes.probe` for its behaviour."""
    return Message(queue, f"probe_{queue}", (name,), behaviour, dict(options or {}))


def probes(names: Sequence[str], **behaviour: Any) -> list[Message[Any]]:
    """Return the messages of probes that behave alike."""
    return [probe(name, **behaviour) for name in names]
