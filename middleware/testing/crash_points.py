"""Does an actor's effect take place once, wherever its worker dies? Tried at every step that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Final, TypeAlias

from dramatiq import Actor, Message
from sqlalchemy.orm import Session

from ..effects.keyed import EXTERNAL
from ..effects.ledger import Ledger
from ..transport.broker import JobBroker
from ..transport.inline import InlineBroker
from .findings import Ended, judge
from .plan import scenarios
from .probe import Probe
from .quiet import quiet_crashes
from .records import Records
from .scenarios import NotReached, Run, Scenario
from .steps import Steps
from .watching import Watch
from .workers import ledger_of, running_worker

Count: TypeAlias = Callable[[Session], int]
"""Returns how often the effect has taken place, as far as the database or the provider knows."""
Prepare: TypeAlias = Callable[[Session], object]

_BACKOFF_MS: Final = 50
_RETRIES: Final = 5
_FEWEST_THREADS: Final = 2
_LEASE: Final = timedelta(seconds=1)


class CrashPoints:
    """Runs an actor again and again, and lets something else go wrong each time.

    Parameters:
        timeout: how long a job may take until every delivery of it has ended, retries included. Defaults to
            20 seconds.
        probe: what fails an actor that does while its transaction is open what it must not. Defaults to one
            of its own.
    """

    def __init__(self, *, timeout: timedelta = timedelta(seconds=20), probe: Probe | None = None) -> None:
        self._seconds = timeout.total_seconds()
        self.probe = Probe() if probe is None else probe

    def check(
        self,
        actor: Actor[..., Any],
        /,
        *args: Any,
        effect: Count,
        prepare: Prepare | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Check that an actor's effect takes place once, whatever happens to its worker.

        Parameters:
            actor: declared on either broker, with at least two worker threads.
            args, kwargs: of the job.
            effect: called with a session before and after each run; returns how often the effect is there.
            prepare: called with a session before each run, and committed: puts the rows as they were before
                the job ever ran. The job's key is freed without it. Defaults to nothing.

        Returns:
            What went wrong in each run, in words.

        Raises:
            AssertionError: the effect did not take place once, in at least one of the runs, all of which are
                listed; or the job does not complete when nothing goes wrong.
            LedgerViolation: the probe has seen something.
        """
        bench = _Bench(actor, args, kwargs, effect, prepare, self._seconds)
        with bench, self.probe.watching(bench.broker):
            for when in ("", ", for the second time"):  # the first fills what the actor caches
                plain = bench.run(Scenario(), max_retries=0)
                self.probe.check()
                _check_plain(bench, plain, when)
            tried, found = [Scenario.words], []
            for scenario in scenarios(
                plain.points, can_end=bench.records.can_end_transactions, is_parallel=bench.is_parallel
            ):
                tried.append(scenario.words)
                ended = bench.run(scenario, max_retries=_RETRIES)
                found += [f"{scenario.words}: {each}" for each in bench.judge(ended)]
                if not ended.is_settled:
                    break  # what is left of this run would disturb the next
            self.probe.check()
        if found:
            listed = "".join(f"\n  after {each}" for each in found)
            raise AssertionError(
                f"expected the effect of {bench.call} to take place once, got {len(found)} of {len(tried)} "
                f"runs in which it did not:{listed}"
            )
        return tried


class _Bench:
    """Where one job is run again and again."""

    def __init__(
        self,
        actor: Actor[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        effect: Count,
        prepare: Prepare | None,
        seconds: float,
    ) -> None:
        assert isinstance(actor.broker, JobBroker)
        self.broker = actor.broker
        self.ledger = ledger_of(self.broker)
        self._actor, self._args, self._kwargs = actor, args, kwargs
        self._effect, self._prepare, self._seconds = effect, prepare, seconds
        keyed = None if self.ledger is None else self.ledger._actors.get(actor.actor_name)
        self.keyed = keyed
        self.key = None if keyed is None else keyed.entry(args, kwargs, "").key
        self.records = Records(None if self.ledger is None else self.ledger._store)
        queue = self.broker.specs[actor.queue_name]
        self.is_parallel = queue.prefetch > 1 and not queue.serial
        shown = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        self.call = f"{actor.actor_name}({', '.join(shown)})"
        self._stack = ExitStack()

    def __enter__(self) -> _Bench:
        if isinstance(self.broker, InlineBroker) and self.broker._threads < _FEWEST_THREADS:
            raise ValueError(
                f"expected the inline broker to have at least {_FEWEST_THREADS} threads, got: "
                f"{self.broker._threads}, so that two deliveries can meet; set JOBS_INLINE_THREADS"
            )
        self._stack.callback(self.records.close)
        self._stack.enter_context(running_worker(self.broker, {self._actor.queue_name}))
        self._stack.enter_context(_short_leases(self.ledger))
        self._stack.enter_context(quiet_crashes())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, scenario: Scenario, *, max_retries: int) -> Ended:
        """Run the job from the beginning, with something that goes wrong."""
        if self._prepare is not None:
            self.records.ask(self._prepare)
        self.records.forget(self.key)
        before = self._count()
        message, problem = self._message(max_retries), ""
        watch = Watch(self.broker, scenario.reach, only=message.message_id)
        with watch, Steps(self.ledger, watch.current_life):
            self.broker.enqueue(message)
            is_external = self.keyed is not None and self.keyed.effect == EXTERNAL
            run = Run(message, watch, self.records, self.key, is_external, self._seconds, self._forget_leases)
            try:
                scenario.act(run)
            except NotReached as missing:
                problem = f"the job never came to the point {missing} again: let prepare= put all of it back"
            is_settled = watch.wait_until_settled(self._seconds)
        has_asked = self.records.has_asked(self.key)
        return Ended(watch.lives, self._count() - before, is_settled, has_asked, problem)

    def judge(self, ended: Ended) -> Iterator[str]:
        """Yield what is wrong with the end of a run."""
        return judge(ended, self.keyed, self._actor)

    def _message(self, max_retries: int) -> Message[Any]:
        return self._actor.message_with_options(
            args=tuple(self._args),
            kwargs=self._kwargs,
            max_retries=max_retries,
            min_backoff=_BACKOFF_MS,
            max_backoff=_BACKOFF_MS,
        )

    def _count(self) -> int:
        count = self.records.ask(self._effect)
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(
                f"expected effect= to return how often the effect has taken place, got: {count!r}; count "
                "rows with select(func.count()), or the requests that a provider got"
            )
        return count

    def _forget_leases(self) -> None:
        if self.ledger is None:
            return
        leases = self.ledger._leases
        for token in [token for token in leases._held if token[0] == self.key]:
            leases.drop(token)


def _check_plain(bench: _Bench, plain: Ended, when: str) -> None:
    """Raise if a job does not complete though nothing goes wrong."""
    wrong = list(bench.judge(plain))
    if not wrong:
        return
    last = plain.lives[-1].error if plain.lives else None
    raise AssertionError(
        f"expected {bench.call} to take effect once when nothing goes wrong{when}, got: {'; '.join(wrong)}; "
        "let prepare= write the rows that it needs and take away what it writes, and effect= count that"
    ) from last


@contextmanager
def _short_leases(ledger: Ledger | None) -> Iterator[None]:
    """Let nobody wait for the lease of an attempt that its worker still makes."""
    if ledger is None:
        yield
        return
    intents = ledger._leases.intents
    lease, intents.lease = intents.lease, _LEASE
    pause, ledger._leases._pause_seconds = ledger._leases._pause_seconds, _LEASE.total_seconds() / 3
    try:
        yield
    finally:
        intents.lease, ledger._leases._pause_seconds = lease, pause
