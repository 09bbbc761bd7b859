"""The broker for production: quorum queues on RabbitMQ."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import pika
from dramatiq import Worker
from dramatiq.broker import Consumer
from dramatiq.common import iter_queue
from dramatiq.middleware import Middleware

from ..errors import TopologyError
from ..logs import get_logger
from .broker import JobBroker
from .consumer import QueueConsumer
from .counts import QueueCounts, count_queue
from .declare import declare
from .liveness import EXIT_CONFIGURATION, EXIT_CONNECTION, end_process, watch_threads
from .management import Management, ManagementError, few_members
from .policies import policy_conflicts
from .publisher import Publisher
from .queues import Queue
from .topology import topology_of
from .wire import ChannelClosed, Wire, WireError, parse_urls

log = get_logger(__name__)

_START_SECONDS: Final = 15.0


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
        self._parameters = parse_urls(url)
        self._topologies: dict[str, Any] = {}
        name = f"jobs {socket.gethostname()}:{os.getpid()}"
        self.publisher = Publisher(self._parameters, self._topologies, f"{name} publisher")
        super().__init__(queues=queues, middleware=middleware, outbound=self.publisher, **options)
        self._topologies.update({queue.name: topology_of(queue, self.levels) for queue in queues})
        self._consumer_timeout = consumer_timeout
        self._grace = grace
        self._consumers: list[QueueConsumer] = []
        self._watching: threading.Event | None = None
        self._management = None
        if management_url:
            self._management = Management(management_url, self._parameters[0].virtual_host)

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
        unknown = [name for name in names if name not in self.specs]
        if unknown:
            self._refuse(
                f"expected --queues to be among {', '.join(sorted(self.specs))}, got: {', '.join(unknown)}; "
                f"correct the name or declare a Queue of that name"
            )
        for name in names:
            self._check_arithmetic(self.specs[name], worker.worker_threads)
            self.declare_queue(name)
        self._declare(names)
        self._check_policies(names)

    def _check_arithmetic(self, queue: Queue, threads: int) -> None:
        """A prefetched job's clock runs too: the broker ends the channel that holds one for too long."""
        rounds = math.ceil(queue.prefetch / threads)
        longest = rounds * queue.time_limit + self._grace
        if longest > self._consumer_timeout:
            self._refuse(
                f"queue {queue.name!r}: expected ceil(prefetch / threads) x time limit + grace to be at most "
                f"JOBS_BROKER_CONSUMER_TIMEOUT ({self._consumer_timeout}), got: "
                f"ceil({queue.prefetch} / {threads}) x {queue.time_limit} + {self._grace} = {longest}; lower "
                f"the queue's prefetch or time limit, start more threads, or raise consumer_timeout on the "
                f"broker and the setting with it"
            )

    def _declare(self, names: list[str]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                wire = Wire(self._parameters, f"jobs {socket.gethostname()}:{os.getpid()} start-up")
                try:
                    for name in names:
                        declare(wire, self._topologies[name])
                finally:
                    wire.close()
                return
            except TopologyError as error:
                self._refuse(str(error))
            except (WireError, ChannelClosed, OSError) as error:
                if time.monotonic() > deadline:
                    self._refuse(f"no broker after {_START_SECONDS:.0f} s: {error}", EXIT_CONNECTION)
                threading.Event().wait(0.5)

    def _check_policies(self, names: list[str]) -> None:
        if self._management is None:
            return
        declared = [queue for name in names for queue in self._topologies[name].queues]
        try:
            conflicts = policy_conflicts(self._management.policies(), declared)
        except ManagementError as error:
            log.warning("startup.policies_not_checked", reason=str(error))
            return
        if conflicts:
            self._refuse("; ".join(conflicts))
        self._check_members(self._management, [queue.name for queue in declared])

    @staticmethod
    def _check_members(management: Management, declared: list[str]) -> None:
        try:
            nodes = management.nodes()
            few = few_members(management.queues(), declared, nodes)
        except ManagementError as error:
            log.info("startup.members_not_checked", reason=str(error))
            return
        if few:
            log.warning(
                "startup.few_members", queues=few, nodes=nodes, advice="rabbitmq-queues grow NODE all"
            )

    def _refuse(self, text: str, code: int = EXIT_CONFIGURATION) -> None:
        self.logger.critical("Refusing to start: %s", text)
        raise SystemExit(code)

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
    def parameters(self) -> list[pika.URLParameters]:
        """The nodes' connection parameters, for tools that look into the broker."""
        return self._parameters
