"""What does a job's failure lead to? The middleware that stores each delivery's outcome.

It takes the place of Dramatiq's `Retries`, which publishes the retry from a hook whose exceptions are
logged and swallowed: if that publish fails, the original is acknowledged and the job is lost.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dramatiq import Actor
from dramatiq.errors import ActorNotFound
from dramatiq.middleware import Middleware
from dramatiq.middleware import Shutdown as ShutdownInterrupt

from ..errors import DeclarationError
from ..logs import get_logger
from ..transport.broker import JobBroker
from ..transport.delivery import Delivery
from ..transport.evidence import describe, type_name
from ..transport.outcome import COMPLETED, DISCARDED, FAILED_BY_MIDDLEWARE, Dead, Outcome, Retry
from .kinds import Kind
from .policy import RetryPolicy, decide

log = get_logger(__name__)


class Failures(Middleware):
    """Decides between completed, retry and dead letter.

    Parameters:
        max_retries: attempts after the first. Defaults to 12, which with the default backoff spreads
            over one to two hours.
        min_backoff: pause after the first attempt, doubled with each retry. Defaults to 1 second.
        max_backoff: longest pause. Defaults to 1 hour.
    """

    def __init__(
        self,
        *,
        max_retries: int = 12,
        min_backoff: timedelta = timedelta(seconds=1),
        max_backoff: timedelta = timedelta(hours=1),
    ) -> None:
        self._policy = RetryPolicy(max_retries, min_backoff, max_backoff)

    @property
    def actor_options(self) -> set[str]:
        """Options with Dramatiq's names and meaning; backoffs are milliseconds."""
        return {"max_retries", "min_backoff", "max_backoff", "retry_when", "throws", "on_retry_exhausted"}

    def before_declare_actor(  # type: ignore[override]  # the kit's brokers call it
        self, broker: JobBroker, actor: Actor[..., Any]
    ) -> None:
        """Check the actor's options.

        Raises:
            DeclarationError: an option has a wrong type or range.
        """
        options = actor.options
        for name in ("max_retries", "min_backoff", "max_backoff"):
            value = options.get(name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if value is not None and not whole:
                raise _declared(actor, name, "a whole number, 0 or more, or None", value)
        if options.get("retry_when") is not None and not callable(options["retry_when"]):
            raise _declared(actor, "retry_when", "callable with (retries, exception)", options["retry_when"])
        throws = options.get("throws")
        if throws is not None and not _are_exceptions(throws):
            raise _declared(actor, "throws", "an exception class or a tuple of them", throws)

    def retry_window(self, broker: JobBroker, actor: Actor[..., Any]) -> timedelta | None:
        """Return how long an actor's job may be retried; None without a bound.

        Not counted: `Snooze`, `Retry(delay=…)` and a message's own options, not known before they come.
        """
        return self._policy.merged(actor.options).window(broker.time_limit_of(actor.actor_name, {}))

    def decide(self, broker: JobBroker, delivery: Delivery, error: BaseException) -> Outcome:
        """Return what an exception means for a delivery, and note what follows an exhausted retry."""
        try:
            actor = broker.get_actor(delivery.actor_name)
        except ActorNotFound:
            return Dead(Kind.UNKNOWN_ACTOR, error)
        policy = self._policy.merged(actor.options, delivery.options)
        outcome = decide(
            error,
            retries=delivery.attempt - 1,
            policy=policy,
            throws=actor.options.get("throws"),
            is_shut_down=_is_shut_down(delivery, error),
        )
        if isinstance(outcome, Dead) and Kind(outcome.kind).is_retried:
            self._exhausted(broker, actor, delivery, policy)
        return outcome

    @staticmethod
    def _exhausted(
        broker: JobBroker, actor: Actor[..., Any], delivery: Delivery, policy: RetryPolicy
    ) -> None:
        target = delivery.options.get("on_retry_exhausted") or actor.options.get("on_retry_exhausted")
        if target and target not in broker.actors:
            log.error("job.callback_unknown", message_id=delivery.message_id, on_retry_exhausted=target)
        elif target:
            facts = {"retries": delivery.attempt - 1, "max_retries": policy.max_retries}
            delivery.follow_ups.append((broker.get_actor(target).message(delivery.asdict(), facts), None))

    def after_process_message(  # type: ignore[override]  # the kit's brokers call it, with deliveries
        self,
        broker: JobBroker,
        message: Delivery,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        """Store the outcome."""
        if exception is None:
            if message.outcome is None:
                message.outcome = FAILED_BY_MIDDLEWARE if message.failed else COMPLETED
            return
        message.outcome = outcome = self.decide(broker, message, exception)
        if isinstance(outcome, Dead):
            message.fail()
        _report(message, outcome, exception)

    def after_skip_message(  # type: ignore[override]  # the kit's brokers call it, with deliveries
        self, broker: JobBroker, message: Delivery
    ) -> None:
        """Store the outcome of a job that a middleware kept from running."""
        if message.outcome is None:
            message.outcome = Dead(Kind.EXPIRED, message.exception) if message.failed else DISCARDED


def _is_shut_down(delivery: Delivery, error: BaseException) -> bool:
    """Whether the kit interrupted the job to stop the worker; an actor may raise the same by itself.

    Dramatiq wraps the interrupt of a coroutine that does not end when it is cancelled.
    """
    is_raised = isinstance(error, ShutdownInterrupt) or isinstance(error.__cause__, ShutdownInterrupt)
    return is_raised and delivery.armed is not None and delivery.armed.fired is ShutdownInterrupt


def _report(delivery: Delivery, outcome: Outcome, error: BaseException) -> None:
    event = log.bind(
        message_id=delivery.message_id,
        queue=delivery.queue_name,
        actor=delivery.actor_name,
        attempt=delivery.attempt,
        error=type_name(error),
        text=describe(error)[:500],
    )
    if isinstance(outcome, Retry):
        event.warning(
            "job.retried", kind=str(outcome.kind), delay_seconds=round(outcome.delay.total_seconds(), 3)
        )
    elif isinstance(outcome, Dead):
        event.error("job.dead_lettered", kind=str(outcome.kind))
    else:
        event.info(f"job.{outcome.name}")


def _are_exceptions(value: object) -> bool:
    classes = value if isinstance(value, tuple) else (value,)
    return all(isinstance(each, type) and issubclass(each, BaseException) for each in classes)


def _declared(actor: Actor[..., Any], name: str, rule: str, value: object) -> DeclarationError:
    return DeclarationError(f"actor {actor.actor_name!r}: expected {name} to be {rule}, got: {value!r}")
