"""How did the jobs end that this process sent and runs itself?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any, Final

from dramatiq import Broker, Message
from dramatiq.middleware import Middleware

from ..errors import JobsError
from ..transport.delivery import Delivery
from ..transport.inline import InlineBroker
from ..transport.outcome import Outcome, Retry, Returned, Snoozed

UNFINISHED: Final = (Retry, Snoozed, Returned)
"""Outcomes of a delivery that leave the job in the system."""


class Stuck(JobsError):
    """No followed job made a step for longer than its follower has patience."""


class Follower(Middleware):
    """Watches an inline broker's deliveries.

    Parameters:
        broker: the inline broker; the follower joins its middleware and hears of what is sent from then on.
    """

    def __init__(self, broker: InlineBroker) -> None:
        self._settled: SimpleQueue[tuple[Delivery, Outcome]] = SimpleQueue()
        broker.add_middleware(self)

    def after_ack(self, broker: Broker, message: Any) -> None:
        """Pass on what was settled; Dramatiq calls this once per delivery."""
        if isinstance(message, Delivery) and message.outcome is not None:
            self._settled.put((message, message.outcome))

    after_nack = after_ack

    def outcomes(
        self, sent: Iterable[Message[Any]], patience: timedelta | None = None
    ) -> Iterator[tuple[Delivery, Outcome]]:
        """Yield each delivery of these jobs with its outcome as it is settled, until all of them have ended.

        Other jobs, such as those that they send themselves, are passed over.

        Parameters:
            sent: the jobs to follow.
            patience: how long to wait for the next delivery; None waits as long as it takes.

        Raises:
            Stuck: no delivery was settled for so long.
        """
        seconds = None if patience is None else patience.total_seconds()
        left = {message.message_id for message in sent}
        while left:
            try:
                delivery, outcome = self._settled.get(timeout=seconds)
            except Empty:
                raise Stuck(
                    f"expected {len(left)} more jobs to end, got: no outcome for {seconds:g} s"
                ) from None
            if delivery.message_id not in left:
                continue
            if not isinstance(outcome, UNFINISHED):
                left.remove(delivery.message_id)
            yield delivery, outcome
