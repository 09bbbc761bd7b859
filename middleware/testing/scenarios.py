"""What goes wrong, and when? One scenario for each run of the job under test.

A scenario is told of every point that a delivery reaches, in the worker's thread, and acts from outside, in
the test's: it plays the broker and the database, which notice that a worker is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from dramatiq import Message
from dramatiq.errors import Retry

from .life import Life, Point
from .records import Records
from .watching import Watch

_TWIN_SECONDS: Final = 2.0
"""How long a frozen worker waits to see what its twin can do without it."""
_LOCK_SECONDS: Final = 0.3
"""The same, if it may be waiting for a row that the frozen one has locked."""
_NEXT_MS: Final = 50
"""Until the attempt after one that failed."""


class NotReached(Exception):
    """The job did something else than in its plain run."""


@dataclass(frozen=True)
class Run:
    """One run of the job, as its scenario sees it.

    Attributes:
        message: the job.
        watch: of the broker.
        records: the kit's own way into the database.
        key: the job's idempotency key, None if it has none.
        is_external: whether the job makes attempts that have a lease.
        seconds: how long anything may take.
        forget_leases: makes this process renew no lease of the key's attempts any more.
    """

    message: Message[Any]
    watch: Watch
    records: Records
    key: str | None
    is_external: bool
    seconds: float
    forget_leases: Callable[[], None]

    def wait_for_first(self) -> Life | None:
        """Return the first delivery, once it is where something happens to it; None if it never is."""
        watch = self.watch
        watch.wait(lambda: watch.is_settled or (watch.lives and watch.lives[0].is_there), self.seconds)
        first = watch.lives[0] if watch.lives else None
        return first if first is not None and first.is_there else None

    def send_again(self) -> None:
        """Send the same message once more."""
        self.watch.broker.enqueue(self.message)

    def give_back(self, life: Life) -> None:
        """Do what follows the death of a worker: its leases run out, the broker delivers again."""
        if self.is_external:
            self.forget_leases()
            if life.is_dead or not life.is_open:  # else the frozen transaction holds the row
                self.records.expire(self.key)
        life.give_back()


class Scenario:
    """A run in which nothing goes wrong.

    Attributes:
        words: what goes wrong.
    """

    words = "a run in which nothing goes wrong"

    def reach(self, life: Life, point: Point) -> Future[None] | None:
        """Be told of a point; called in the worker's thread."""
        return None

    def act(self, run: Run) -> None:
        """Act from outside, once the job is sent.

        Raises:
            NotReached: the job did not come to where something was to go wrong.
        """


class Twice(Scenario):
    """The job is delivered a second time after it has ended."""

    words = "a second delivery after the first has ended"

    def act(self, run: Run) -> None:
        """Wait for the end of the first, and send the same message again."""
        run.watch.wait_until_settled(run.seconds)
        run.send_again()


class AtPoint(Scenario):
    """Something happens to the first delivery at one point of its life.

    Parameters:
        index: which of its points, from 0.
        point: that point, as the plain run has reached it.
        words: what happens there.
    """

    def __init__(self, index: int, point: Point, words: str) -> None:
        self.words = words
        self._index = index
        self._point = point

    def reach(self, life: Life, point: Point) -> Future[None] | None:
        """Let it happen at the point."""
        if life.number == 0 and len(life.points) - 1 == self._index and point == self._point:
            return self.happen(life)
        return None

    def happen(self, life: Life) -> Future[None] | None:
        """Do it."""
        raise NotImplementedError

    def wait(self, run: Run) -> Life:
        """Return the first delivery, once it has come to the point."""
        first = run.wait_for_first()
        if first is None:
            raise NotReached(str(self._point))
        return first


class Crash(AtPoint):
    """The worker dies at a point, and the broker delivers again."""

    def happen(self, life: Life) -> None:
        """Die."""
        life.die()

    def act(self, run: Run) -> None:
        """Deliver again, once the thread is unwound and its connections are gone."""
        first = self.wait(run)
        run.watch.wait(lambda: first.has_ended, run.seconds)
        run.give_back(first)


class Together(AtPoint):
    """Two workers have the job at the same time; the first waits at a point until the second has begun."""

    def __init__(self, index: int, point: Point, words: str) -> None:
        super().__init__(index, point, words)
        self._held: Future[None] = Future()

    def happen(self, life: Life) -> Future[None]:
        """Wait for the twin."""
        life.arrive()
        return self._held

    def act(self, run: Run) -> None:
        """Deliver it again while the first waits, and let both go on as soon as both are there."""
        try:
            self.wait(run)
            run.send_again()
            run.watch.wait(lambda: len(run.watch.lives) > 1, _TWIN_SECONDS)
        finally:
            self._held.set_result(None)


class Stall(AtPoint):
    """The worker freezes at a point, the broker delivers again, and then it goes on as if nothing had been.

    Parameters:
        index: see `AtPoint`.
        point: see `AtPoint`.
        words: see `AtPoint`.
        is_ended: whether the database ends the frozen transaction meanwhile. Defaults to False.
        is_long: whether the twin gets the time to give up, though it can do nothing while that transaction
            is open. Defaults to False.
    """

    def __init__(
        self, index: int, point: Point, words: str, *, is_ended: bool = False, is_long: bool = False
    ) -> None:
        super().__init__(index, point, words)
        self._is_ended = is_ended
        self._is_long = is_long
        self._held: Future[None] = Future()

    def happen(self, life: Life) -> Future[None]:
        """Freeze."""
        life.freeze()
        return self._held

    def act(self, run: Run) -> None:
        """Deliver again, see how far the twin gets, and let the first go on."""
        try:
            first = self.wait(run)
            if self._is_ended and first.backend is not None:
                run.records.terminate(first.backend)
            run.give_back(first)
            if first.is_acknowledged:
                return
            self._wait_for_twin(run, first)
        finally:
            self._held.set_result(None)

    def _wait_for_twin(self, run: Run, first: Life) -> None:
        lives = run.watch.lives
        goes_on = self._is_ended or self._is_long
        if (first.has_key or first.has_turn) and not goes_on:
            run.watch.wait(lambda: len(lives) > 1, _TWIN_SECONDS)
            return
        seconds = _LOCK_SECONDS if first.is_open and not goes_on else _TWIN_SECONDS
        run.watch.wait(lambda: len(lives) > 1 and lives[1].has_ended, seconds)


class CrashAroundRetry(Scenario):
    """The first attempt fails before it has done anything, and the worker dies while its retry is published.

    Parameters:
        point: of settlement, where it dies.
        words: see `AtPoint`.
    """

    def __init__(self, point: Point, words: str) -> None:
        self.words = words
        self._point = point

    def reach(self, life: Life, point: Point) -> None:
        """Fail at the first point, and die at the one of settlement."""
        if life.number == 0 and len(life.points) == 1:
            raise Retry("the crash-point kit lets this attempt fail", delay=_NEXT_MS)
        if life.number == 0 and point == self._point:
            life.die()

    def act(self, run: Run) -> None:
        """Deliver again; a job that is not retried ends by itself."""
        first = run.wait_for_first()
        if first is not None:
            run.give_back(first)
