"""The broker for production: quorum queues on RabbitMQ."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import pika
from dramatiq import Worker
from dramatiq.broker import Consumer
from dramatiq.common import iter_queue
from dramatiq.middleware import Middleware

from .addresses import parse_urls
from .broker import JobBroker
from .consumer import QueueConsumer
from .counts import QueueCounts, count_queue
from .liveness import EXIT_CONFIGURATION, end_process, watch_threads
from .management import Management
from .publisher import Publisher
from .queues import Queue
from .start_up import StartUp
from .topology import Topology, topology_of
from .wire import Wire


class QuorumBroker(JobBroker):
    """Keeps jobs in RabbitMQ's quorum queues.

    Parameters:
        url: amqp:// or amqps:// addresses, several of one cluster separated by `;`.
        queues: the declared queues.
        middleware: the whole ordered list.
        management_url: RabbitMQ's HTTP API with user and password; None leaves policies unchecked and
            unacknowledged jobs uncounted.
        consumer_timeout: the broker's consumer_timeout, after which it closes a channel that holds a
            delivery. Defaults to 30 minutes, the broker's default.
        grace: what a job may take beyond its time limit. Defaults to 25 seconds.
        options: see `JobBroker`.

    Raises:
        ConfigurationError: an address is malformed.
    """

    def __init__(
        self,
        url: str,
        *,
        queues: Iterable[Queue],
        middleware: list[Middleware],
        management_url: str | None = None,
        consumer_timeout: timedelta = timedelta(minutes=30),
        grace: timedelta = timedelta(seconds=25),
        **options: Any,
    ) -> None:
        queues = list(queues)
        self.consumer_timeout = consumer_timeout
        self.grace = grace
        self._parameters = parse_urls(url)
        self._topologies: dict[str, Topology] = {}
        name = f"jobs {socket.gethostname()}:{os.getpid()}"
        self.publisher = Publisher(self._parameters, self._topologies, f"{name} publisher")
        super().__init__(queues=queues, middleware=middleware, outbound=self.publisher, **options)
        self._topologies.update({queue.name: topology_of(queue, self.levels) for queue in queues})
        self._consumers: list[QueueConsumer] = []
        self._watching: threading.Event | None = None
        self._management = None
        if management_url:
            self._management = Management(management_url, self._parameters[0].virtual_host)
        self._start_up = StartUp(
            self.specs, self._topologies, self._parameters, self._management, consumer_timeout, grace, name
        )

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 1000) -> Consumer:
        """Return the consumer of a queue; its prefetch is the Queue's, not Dramatiq's."""
        consumer = QueueConsumer(
            parameters=self._parameters,
            queue=self.specs[queue_name],
            topology=self._topologies[queue_name],
            settlement=self.settlement,
            knows_actor=self.actors.__contains__,
            fatal=lambda text: end_process(EXIT_CONFIGURATION, text),
            idle_ms=timeout,
            name=f"jobs {socket.gethostname()}:{os.getpid()} {queue_name}",
        )
        self._consumers.append(consumer)
        return consumer

    def prepare(self, worker: Worker) -> None:
        """Check names, arithmetic, broker, topology and policies before the first delivery.

        Raises:
            SystemExit: the worker must not start; one CRITICAL line said why.
        """
        names = sorted(worker.consumer_whitelist or self.specs)
        self._start_up.check_names(names)
        self._start_up.check_arithmetic(names, worker.worker_threads)
        for name in names:
            self.declare_queue(name)
        self._start_up.declare(names)
        self._start_up.check_policies(names)

    def emit_after(self, signal: str, *args: Any, **kwargs: Any) -> None:
        """Call the hooks; once a worker runs, its threads are watched."""
        super().emit_after(signal, *args, **kwargs)
        if signal == "worker_boot":
            self._watching = watch_threads(args[0])

    def drain(self, worker: Worker) -> None:
        """Cancel the consumers and give back what no thread has started."""
        if self._watching is not None:
            self._watching.set()
        for consumer in self._consumers:
            consumer.drain()
        for item in iter_queue(worker.work_queue):
            item.message.link.requeue(item.message.tag)
            worker.work_queue.task_done()

    def queue_counts(self, queue: str) -> QueueCounts:
        """Return how many of a queue's jobs are in which state.

        Raises:
            WireError: no broker answered.
        """
        wire = Wire(self._parameters, f"jobs {socket.gethostname()}:{os.getpid()} counts")
        try:
            return count_queue(wire, queue, self.levels, self._management)
        finally:
            wire.close()

    def close(self) -> None:
        """Close the publisher's connection."""
        self.publisher.close()

    @property
    def topologies(self) -> Mapping[str, Topology]:
        """What each queue needs on the broker."""
        return self._topologies

    @property
    def management(self) -> Management | None:
        """RabbitMQ's HTTP API, None where no address is set."""
        return self._management

    @property
    def parameters(self) -> list[pika.URLParameters]:
        """The nodes' connection parameters, for tools that look into the broker."""
        return self._parameters
