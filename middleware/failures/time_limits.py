"""What if a job runs too long? It is interrupted, and the interrupt is a failure of kind `timeout`.

Takes the place of Dramatiq's `TimeLimit`, whose interrupt can land after the actor returned and turn a
finished job into a failed one. Wraps innermost: what other middleware put around the actor is not
interrupted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, Final

from dramatiq import Actor, Broker, Worker
from dramatiq.middleware import Middleware, TimeLimitExceeded

from ..logs import get_logger
from ..transport.broker import JobBroker
from ..transport.delivery import Delivery, current_delivery
from ..transport.wrapping import Coroutine, Function, wrap
from .interrupts import Interrupts

log = get_logger(__name__)

_INTERVAL_SECONDS: Final = 0.1


class TimeLimits(Middleware):
    """Interrupts jobs that run into their time limit: the message's, the actor's or the queue's.

    The actor option `time_limit` is in milliseconds and may not exceed the queue's limit.
    """

    def __init__(self) -> None:
        self.interrupts = Interrupts()
        self._stop = threading.Event()

    @property
    def actor_options(self) -> set[str]:
        """`time_limit`, in milliseconds."""
        return {"time_limit"}

    def before_declare_actor(  # type: ignore[override]  # the kit's brokers call it
        self, broker: JobBroker, actor: Actor[..., Any]
    ) -> None:
        """Enclose the actor's function between arm and disarm."""
        wrap(
            actor,
            sync=lambda function: self._limited(broker, actor, function),
            coroutine=lambda function: self._limited_async(broker, actor, function),
        )

    def limit_function(
        self, broker: JobBroker, actor: Actor[..., Any], function: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Enclose a function that runs for an actor's job before the actor itself."""
        if iscoroutinefunction(function):
            limited_async = self._limited_async(broker, actor, function)

            async def call_async(*args: Any, **kwargs: Any) -> Any:
                result = await limited_async(*args, **kwargs)
                _forget_limit()
                return result

            return call_async
        limited = self._limited(broker, actor, function)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = limited(*args, **kwargs)
            _forget_limit()
            return result

        return call

    def _limited(self, broker: JobBroker, actor: Actor[..., Any], function: Function) -> Function:
        def limited(*args: Any, **kwargs: Any) -> Any:
            delivery = current_delivery()
            if delivery is None or delivery.armed is not None:
                return function(*args, **kwargs)
            seconds = _seconds(broker, actor, delivery)
            return self._run(delivery, seconds, lambda: function(*args, **kwargs))

        return limited

    def _limited_async(self, broker: JobBroker, actor: Actor[..., Any], function: Coroutine) -> Coroutine:
        async def limited(*args: Any, **kwargs: Any) -> Any:
            delivery = current_delivery()
            if delivery is None or delivery.armed is not None:
                return await function(*args, **kwargs)
            seconds = _seconds(broker, actor, delivery)
            armed = delivery.armed = self.interrupts.arm(delivery.thread_id, seconds)
            try:
                result = await function(*args, **kwargs)
            except (SystemExit, KeyboardInterrupt) as error:
                self.interrupts.withdraw(armed)
                # asyncio would end the loop over it, and with it every other async job.
                raise RuntimeError(f"the actor raised {type(error).__name__}") from error
            except BaseException:
                self.interrupts.withdraw(armed)
                raise
            self.interrupts.disarm(armed)
            return result

        return limited

    def _run(self, delivery: Delivery, seconds: float, call: Callable[[], Any]) -> Any:
        armed = delivery.armed = self.interrupts.arm(threading.get_ident(), seconds)
        try:
            result = call()
        except BaseException:
            self.interrupts.withdraw(armed)
            raise
        self.interrupts.disarm(armed)
        return result

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        """Start the thread that watches the deadlines."""
        self._stop = threading.Event()  # a worker may have been stopped in this process before
        threading.Thread(target=self._watch, args=(self._stop,), name="jobs-time-limits", daemon=True).start()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Stop watching."""
        self._stop.set()

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(_INTERVAL_SECONDS):
            for thread_id in self.interrupts.fire_due(TimeLimitExceeded):
                log.warning("job.time_limit_exceeded", thread=thread_id)


def _seconds(broker: JobBroker, actor: Actor[..., Any], delivery: Delivery) -> float:
    return broker.time_limit_of(actor.actor_name, delivery.options).total_seconds()


def _forget_limit() -> None:
    """Let the next function of the job have a time limit of its own."""
    delivery = current_delivery()
    if delivery is not None:
        delivery.armed = None
