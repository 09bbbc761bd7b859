"""A worker of the kit whose middleware list knows success from failure, and nothing of errors and logs."""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.middleware import Middleware

from jobs import store
from jobs.broker import build_middleware
from jobs.queues import QUEUES
from jobs.settings import get_settings
from middleware import Failures, QuorumBroker
from middleware.transport.delivery import Delivery
from middleware.transport.outcome import COMPLETED, Dead, Outcome
from tests.bench.pace import ACTOR, pacer


class Decides(Middleware):
    """The least that a list needs: a job that raises is dead."""

    def decide(self, broker: Any, delivery: Delivery, error: BaseException) -> Outcome:
        """Return what an exception means."""
        return Dead("unexpected", error)

    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        """Store the outcome."""
        message.outcome = COMPLETED if exception is None else self.decide(broker, message, exception)


settings = get_settings()
middleware = [Decides() if isinstance(each, Failures) else each for each in build_middleware(settings, store)]
dramatiq.set_broker(QuorumBroker(settings.broker_url, queues=QUEUES, middleware=middleware))
noop = dramatiq.actor(queue_name="critical", actor_name=ACTOR)(pacer())
