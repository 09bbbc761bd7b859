"""For how long does the ledger have to remember? Until no delivery of a job can come any more.

A key may be asked for as long as its job can be delayed, wait, be retried, and be replayed after that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from dramatiq import Actor

from ..durations import format_duration
from ..errors import ConfigurationError
from ..store import Store
from ..transport.broker import JobBroker
from .pruning import Pruner
from .startup import Refused
from .watermark import MOST_AHEAD, READING_AGE

log = logging.getLogger(__name__)

SETTING: Final = "JOBS_LEDGER_RETENTION"
OPTION: Final = "--older-than"
WAY_OUT: Final = (
    "raise it, or lower what it is made of: JOBS_MAX_DELAY, the queue's wait_limit, the actor's max_retries "
    "and max_backoff, JOBS_REPLAY_WINDOW"
)
_SECOND: Final = timedelta(seconds=1)
_SPARE: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long keys are kept.

    Attributes:
        ledger: a key's row, after its commit. Defaults to 120 days.
        replay: how long after it became a dead letter a job may be replayed. Defaults to 30 days.
        every: how often the maintenance forgets those that are older. Defaults to once a day.
    """

    ledger: timedelta = timedelta(days=120)
    replay: timedelta = timedelta(days=30)
    every: timedelta = timedelta(days=1)

    def problem(self, broker: JobBroker, actors: Sequence[Actor[..., Any]], name: str = SETTING) -> str:
        """Return why keys are not kept long enough for these actors' jobs, or nothing; `WAY_OUT` helps.

        Actors whose retries have no bound are left out: no time is long enough for them.
        """
        needed = [need for need in (self._need(broker, actor) for actor in actors) if need is not None]
        longest = max(needed, default=None)
        if longest is None or longest[0] <= self.ledger:
            return ""
        length, terms = longest
        return (
            f"expected {name} to be at least {_shown(length)} ({terms}), got: {format_duration(self.ledger)}"
        )

    def check(self, broker: JobBroker, actors: Sequence[Actor[..., Any]]) -> None:
        """Refuse a worker's start if keys are not kept long enough.

        Raises:
            Refused: with the sum.
        """
        problem = self.problem(broker, actors)
        if problem:
            raise Refused(f"{problem}; {WAY_OUT}")
        endless = [actor.actor_name for actor in actors if broker.retry_window_of(actor) is None]
        if endless:
            log.warning(
                "expected max_retries of every actor with a key to be a number, and retry_when to be absent, "
                "got: retries without a bound for %s; a job that is retried for longer than %s (%s) becomes "
                "a dead letter of kind unprovable",
                *(", ".join(endless), SETTING, format_duration(self.ledger)),
            )

    def pruner(
        self,
        store: Store,
        broker: JobBroker,
        actors: Sequence[Actor[..., Any]],
        grace: timedelta,
        keep: timedelta | None = None,
    ) -> Pruner:
        """Return what forgets keys that no delivery can ask for any more.

        Parameters:
            store: the database.
            broker: has the queues that decide how long that is.
            actors: as do these, which have keys.
            grace: how long past its time limit a job may live.
            keep: how long keys are remembered. Defaults to the ledger's retention.

        Raises:
            ConfigurationError: that is not long enough.
        """
        kept = self if keep is None else replace(self, ledger=keep)
        problem = kept.problem(broker, actors, SETTING if keep is None else OPTION)
        if problem:
            raise ConfigurationError(f"{problem}; {WAY_OUT}")
        return Pruner(store, kept.ledger, wait_before_deleting(broker, grace))

    def _need(self, broker: JobBroker, actor: Actor[..., Any]) -> tuple[timedelta, str] | None:
        window = broker.retry_window_of(actor)
        if window is None:
            return None
        wait = broker.specs[actor.queue_name].wait_limit
        terms = (
            f"JOBS_MAX_DELAY {_shown(broker.max_delay)} + wait_limit of queue {actor.queue_name!r} "
            f"{_shown(wait)} + attempts and retries of actor {actor.actor_name!r} {_shown(window)} + "
            f"JOBS_REPLAY_WINDOW {_shown(self.replay)} + {_shown(MOST_AHEAD)} for clocks that differ"
        )
        return broker.max_delay + wait + window + self.replay + MOST_AHEAD, terms


def wait_before_deleting(broker: JobBroker, grace: timedelta) -> timedelta:
    """Return how long a pruner waits between raising the watermark and deleting what is before it.

    By then every job that began before has ended, with what it calls directly (which does not look for
    itself), and no process goes by what it read before.
    """
    longest = max((queue.time_limit for queue in broker.specs.values()), default=timedelta(0))
    return longest + grace + READING_AGE + _SPARE


def _shown(length: timedelta) -> str:
    """Return a duration in whole seconds, rounded up."""
    return format_duration(-(-length // _SECOND) * _SECOND)
