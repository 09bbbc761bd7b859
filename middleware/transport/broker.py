"""What do both brokers have in common? Declaring, and a job's way out; its way in is in `enqueueing`.

The worker's signals mark which job a thread runs; what hooks enqueue after the actor returned is collected
and published before the acknowledgement; the outcome is carried out by settlement.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from dramatiq import Actor, Message, Worker
from dramatiq.middleware import Callbacks, GroupCallbacks, Middleware, MiddlewareError, Pipelines, SkipMessage

from .copies import Copies
from .counts import QueueCounts
from .declaring import by_name, check_actor
from .delivery import Delivery, set_current_delivery
from .enqueueing import EnqueueingBroker
from .ladder import levels_for
from .liveness import EXIT_CONFIGURATION
from .outcome import RETURNED, Dead, Outcome
from .publication import Publication
from .queues import Queue
from .sending import Outbound
from .settlement import Settlement

_FOLLOWING = (Callbacks, GroupCallbacks, Pipelines)
"""Middleware whose hooks enqueue what follows a job: if one fails, the job has not completed."""


class JobBroker(EnqueueingBroker):
    """Base of the kit's brokers.

    Parameters:
        queues: the declared queues; actors can use no others.
        middleware: the whole ordered list.
        outbound: takes publications.
        publish_timeout: a send ends within it, confirmed or with an error. Defaults to 10 seconds.
        max_delay: the longest delay a job may be sent with. Defaults to 30 days.
        payload_limit: bytes of JSON that a job's arguments may take. Defaults to 64 KiB.
    """

    def __init__(
        self,
        *,
        queues: Iterable[Queue],
        middleware: list[Middleware],
        outbound: Outbound,
        publish_timeout: timedelta = timedelta(seconds=10),
        max_delay: timedelta = timedelta(days=30),
        payload_limit: int = 64 * 1024,
    ) -> None:
        self.max_delay = max_delay
        self.levels = levels_for(max_delay)
        super().__init__(
            specs=by_name(queues),
            middleware=middleware,
            outbound=outbound,
            publish_timeout=publish_timeout,
            max_delay=max_delay,
            payload_limit=payload_limit,
        )
        self.actor_options |= {"snapshots", "idempotent"}

    def use_outbound(self, outbound: Outbound) -> None:
        """Publish through `outbound` from now on."""
        super().use_outbound(outbound)
        self.settlement = Settlement(
            outbound, self._decide, Copies(self._outgoing.publication, 2**self.levels - 1)
        )

    # --- declaring ---

    def add_middleware(self, middleware: Middleware, **position: Any) -> None:
        """Add a middleware to the list; see Dramatiq."""
        super().add_middleware(middleware, **position)
        self._hooks.forget()

    def declare_actor(self, actor: Actor[..., Any]) -> None:
        """Declare an actor.

        Raises:
            DeclarationError: its queue is not declared, an option is wrong, or a middleware refuses it.
        """
        check_actor(actor, self.specs)
        super().declare_actor(actor)

    def declare_queue(self, queue_name: str) -> None:
        """Register a declared queue with the middleware."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = self.specs[queue_name]
            self.emit_after("declare_queue", queue_name)

    def time_limit_of(self, actor_name: str, options: dict[str, Any]) -> timedelta:
        """Return how long a job may run: the shortest of message, actor and queue."""
        actor = self.actors[actor_name]
        limit = self.specs[actor.queue_name].time_limit
        for limit_ms in (actor.options.get("time_limit"), options.get("time_limit")):
            if limit_ms is not None and timedelta(milliseconds=1) * min(limit_ms, 2**40) < limit:
                limit = timedelta(milliseconds=limit_ms)
        return limit

    def retry_window_of(self, actor: Actor[..., Any]) -> timedelta | None:
        """Return how long an actor's job may be retried, its attempts included; None without a bound."""
        for _, hook in self._hooks.named("retry_window"):
            window: timedelta | None = hook(self, actor)
            return window
        return self.time_limit_of(actor.actor_name, {})

    def limited(self, actor: Actor[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that runs for an actor's job beside the actor itself, within its time limit."""
        for _, hook in self._hooks.named("limit_function"):
            function = hook(self, actor, function)
        return function

    # --- a job's way out ---

    def emit_before(self, signal: str, *args: Any, **kwargs: Any) -> None:
        """Call the middleware's `before_` hooks; see Dramatiq."""
        if signal == "process_message":
            self._begin(args[0])
        elif signal == "worker_boot":
            self._check_list()
            self.prepare(args[0])
        elif signal == "worker_shutdown":
            self.drain(args[0])
        for middleware, hook in self._hooks.named("before_" + signal):
            try:
                hook(self, *args, **kwargs)
            except MiddlewareError:
                raise
            except Exception:
                if signal == "declare_actor":
                    raise  # an actor without its ledger or time limit must not run
                self.logger.critical(
                    "Unexpected failure in before_%s of %r.", signal, middleware, exc_info=True
                )

    def emit_after(self, signal: str, *args: Any, **kwargs: Any) -> None:
        """Call the middleware's `after_` hooks in reverse order; see Dramatiq."""
        if signal == "process_message":
            self._end(args[0], **kwargs)
            return
        for middleware, hook in reversed(self._hooks.named("after_" + signal)):
            try:
                hook(self, *args, **kwargs)
            except Exception:
                self.logger.critical(
                    "Unexpected failure in after_%s of %r.", signal, middleware, exc_info=True
                )
        if signal == "skip_message":
            self._end_submitted(args[0])
            set_current_delivery(None)

    def _check_list(self) -> None:
        """Refuse a worker whose jobs would all be returned; a process that only sends needs no list."""
        if not self._hooks.named("decide"):
            self.logger.critical(
                "Refusing to start: expected the middleware list to hold one that decides outcomes, "
                "got: none; add Failures()"
            )
            raise SystemExit(EXIT_CONFIGURATION)

    def _begin(self, delivery: Delivery) -> None:
        if not delivery.link.alive:
            delivery.outcome = RETURNED
            raise SkipMessage("its channel is gone: the broker delivers it again")
        delivery.thread_id = threading.get_ident()
        set_current_delivery(delivery)
        if "job_id" in delivery.options:
            for _middleware, begin in self._hooks.named("begin_submitted"):
                begin(self, delivery)

    def _end(self, delivery: Delivery, **result: Any) -> None:
        """Run the hooks and collect what they enqueue; settlement publishes it before it acknowledges."""
        self._collecting.messages = delivery.follow_ups
        broken: Exception | None = None
        is_followed = delivery.is_followed and result.get("exception") is None
        try:
            for middleware, hook in reversed(self._hooks.named("after_process_message")):
                if is_followed and isinstance(middleware, _FOLLOWING):
                    continue
                try:
                    hook(self, delivery, **result)
                except Exception as error:
                    self.logger.critical(
                        "Unexpected failure in after_process_message of %r.", middleware, exc_info=True
                    )
                    if isinstance(middleware, _FOLLOWING) and result.get("exception") is None:
                        broken = broken or error
            if broken is not None:
                delivery.follow_ups.clear()
                delivery.outcome = self._decide(delivery, broken)
            self._end_submitted(delivery)
        finally:
            self._collecting.messages = None
            set_current_delivery(None)

    def _end_submitted(self, delivery: Delivery) -> None:
        if "job_id" in delivery.options:
            for middleware, end in self._hooks.named("end_submitted"):
                try:
                    end(self, delivery)
                except Exception:
                    self.logger.critical(
                        "Unexpected failure in end_submitted of %r.", middleware, exc_info=True
                    )

    def following(self, delivery: Delivery, result: Any) -> list[tuple[Publication, int | None]]:
        """Return what follows a job that is about to complete, with delays in ms; the caller stores it.

        Parameters:
            delivery: the job, whose actor has returned.
            result: what the actor returned.

        Raises:
            Exception: what follows cannot be sent, so the job must not complete.
        """
        collected: list[tuple[Message[Any], int | None]] = []
        self._collecting.messages = collected
        try:
            for middleware, hook in reversed(self._hooks.named("after_process_message")):
                if isinstance(middleware, _FOLLOWING):
                    hook(self, delivery, result=result)
        finally:
            self._collecting.messages = None
        delivery.is_followed = True
        return [(self._outgoing.publication(message, delay_ms), delay_ms) for message, delay_ms in collected]

    def _decide(self, delivery: Delivery, error: BaseException) -> Outcome:
        """Ask the middleware that decides what a failure means; without one a failure is dead."""
        for middleware, decide in self._hooks.named("decide"):
            try:
                return decide(self, delivery, error)  # type: ignore[no-any-return]  # hooks are untyped
            except Exception:
                self.logger.critical("Unexpected failure in decide of %r.", middleware, exc_info=True)
        return Dead("unexpected", error)

    # --- what each broker does in its own way ---

    def prepare(self, worker: Worker) -> None:
        """Check what a worker needs; raises SystemExit after one clear line if it must not start."""

    def drain(self, worker: Worker) -> None:
        """Take no more deliveries and give back those that no thread has started."""

    def queue_counts(self, queue: str) -> QueueCounts:
        """Return how many of a queue's jobs are in which state."""
        raise NotImplementedError
