"""The broker without a server: for development, for tests, and for applications of a single process."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from dramatiq import Worker
from dramatiq.broker import Consumer
from dramatiq.common import iter_queue
from dramatiq.errors import QueueJoinTimeout
from dramatiq.middleware import Middleware

from ..errors import NotEnqueued
from .broker import JobBroker
from .counts import QueueCounts
from .memory import DeadLetter, Memory, MemoryConsumer
from .queues import Queue


class InlineBroker(JobBroker):
    """Runs jobs in this process, with Dramatiq's own worker, started by the first job.

    The outcomes are those of the production broker; what is missing is durability: jobs that have not
    ended when the process ends are gone.

    Parameters:
        queues: the declared queues.
        middleware: the whole ordered list.
        threads: worker threads. Defaults to 8.
        grace: how long running jobs may take to finish when the process ends. Defaults to 25 seconds.
        options: see `JobBroker`.
    """

    is_inline = True

    def __init__(
        self,
        *,
        queues: Iterable[Queue],
        middleware: list[Middleware],
        threads: int = 8,
        grace: timedelta = timedelta(seconds=25),
        **options: Any,
    ) -> None:
        self._threads = threads
        self._grace = grace
        self._reset()
        super().__init__(queues=queues, middleware=middleware, outbound=self._memory, **options)
        reference = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _reset_in_child(reference))

    def _reset(self) -> None:
        self._memory = Memory()
        self._worker: Worker | None = None
        self._booting: Worker | None = None
        self._has_booted = False
        self._starting = threading.Lock()
        self._consumers: list[MemoryConsumer] = []

    def _after_fork(self) -> None:
        """In a forked child: threads and jobs are the parent's."""
        self._reset()
        self.use_outbound(self._memory)

    def begin_sending(self) -> None:
        """Start the worker before the first job is stored.

        Raises:
            NotEnqueued: the worker refuses to start.
        """
        self._start()

    def _start(self) -> None:
        with self._starting:
            if self._worker is not None:
                return
            if not self._has_booted:
                self._has_booted = True
                self.logger.info("Jobs run in this process and do not survive it; a server: `make services`.")
                self.emit_after("process_boot")
            worker = self._booting = Worker(self, worker_threads=self._threads, worker_timeout=100)
            try:
                worker.start()
            except SystemExit:
                raise NotEnqueued("the worker of this process refuses to start; the log says why") from None
            self._worker = worker
            # No daemon: the interpreter waits for it, and so for the grace of jobs that run.
            threading.Thread(target=self._end_with_main_thread, name="jobs-inline-exit").start()

    def _end_with_main_thread(self) -> None:
        """Stop the worker when the program ends."""
        threading.main_thread().join()
        self.close()

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 100) -> Consumer:
        """Return the consumer of a queue; its prefetch is the Queue's, not Dramatiq's."""
        consumer = MemoryConsumer(
            self._memory, self.specs[queue_name], self.settlement, self.actors.__contains__, timeout
        )
        self._consumers.append(consumer)
        return consumer

    def prepare(self, worker: Worker) -> None:
        """Refuse a worker of another process: it would see no job.

        Raises:
            SystemExit: code 2, after one CRITICAL line.
        """
        if worker is not self._booting:
            self.logger.critical(
                "Refusing to start: expected JOBS_BROKER_URL to be amqp://…, got: inline://, whose jobs "
                "run in the process that sends them; run `make services` and start again in the folder that "
                "holds .env"
            )
            raise SystemExit(2)
        for name in self.specs:
            self.declare_queue(name)

    def drain(self, worker: Worker) -> None:
        """Hand out nothing more and give back what no thread has started."""
        for consumer in self._consumers:
            consumer.drain()
        for item in iter_queue(worker.work_queue):
            item.message.link.requeue(item.message.tag)
            worker.work_queue.task_done()

    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Wait until every job of a queue has ended, delayed ones included.

        Parameters:
            queue_name: the queue.
            timeout: give up after so many milliseconds; None waits for ever.

        Raises:
            QueueJoinTimeout: not all ended in time.
        """
        if not self._memory.wait_until_done([queue_name], None if timeout is None else timeout / 1000):
            raise QueueJoinTimeout(f"queue {queue_name!r}: jobs left after {timeout} ms")

    def join_all(self, timeout: timedelta | None = None) -> None:
        """Wait until every job of every queue has ended; see `join`."""
        if not self._memory.wait_until_done(self.specs, None if timeout is None else timeout.total_seconds()):
            raise QueueJoinTimeout(f"jobs left after {timeout}")

    def dead_letters(self, queue: str) -> list[DeadLetter]:
        """Return a queue's dead letters, oldest first."""
        return list(self._memory.dead[queue])

    def queue_counts(self, queue: str) -> QueueCounts:
        """Return how many of a queue's jobs are in which state."""
        memory = self._memory
        return QueueCounts(
            queue=queue,
            waiting=len(memory.ready[queue]),
            active=len(memory.active[queue]),
            delayed=memory.delayed_count(queue),
            failed=len(memory.dead[queue]),
            dead=None,
        )

    def close(self) -> None:
        """Stop the worker: running jobs get the grace, jobs that wait are gone."""
        with self._starting:
            worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.stop(timeout=int((self._grace + timedelta(seconds=5)) / timedelta(milliseconds=1)))
        self._has_booted = False  # what the boot began has ended with the worker; the next job begins anew
        left = sum(self._memory.open_count(name) for name in self.specs)
        if left:
            self.logger.warning("The process ends with %d jobs that have not ended: they are gone.", left)


def _reset_in_child(reference: weakref.ref[InlineBroker]) -> None:
    broker = reference()
    if broker is not None:
        broker._after_fork()
