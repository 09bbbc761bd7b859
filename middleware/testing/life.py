"""What becomes of one delivery when its worker dies or freezes in the middle of it?

In this process nobody is killed: the thread is unwound by an exception that is no `Exception`, and from that
moment on whatever it does in the name of the delivery has no effect: SQL is refused, nothing is published, no
acknowledgement arrives. That is what a killed process leaves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ..transport.delivery import Delivery, Link
from ..transport.outcome import Outcome

Side: TypeAlias = Literal["before", "after"]
ACKNOWLEDGEMENT: Final = "the acknowledgement"
COMMIT: Final = "COMMIT"


class Crashed(BaseException):
    """The worker is dead: unwinds its thread."""


@dataclass(frozen=True, slots=True)
class Point:
    """A moment in the life of a delivery: just before or just after a step."""

    side: Side
    step: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.side} {self.step}"


Reach: TypeAlias = Callable[["Life", Point], "Future[None] | None"]
"""Told of each point that is reached; may call `die` or `freeze`, and returns what to wait for."""


class Life:
    """One delivery on its way through a worker.

    Parameters:
        delivery: it gets a link that knows whether the worker still lives.
        number: which delivery of its job it is, from 0.
        reach: told of each point.
        changed: notified of what happens to the life. Defaults to one of its own.

    Attributes:
        points: those that were reached, in order.
        is_open: whether a transaction is open.
        has_key: whether that transaction holds the key, so that a twin waits for its end.
        has_turn: whether it is this process's turn to write, on SQLite, and nobody else's.
        is_dead: the worker is dead.
        is_lost: the broker has taken the delivery away: dead, or frozen for too long.
        is_acknowledged: the broker has removed it.
        has_ended: the worker's thread is done with it.
        outcome: how it ended.
        error: what it ended with.
        backend: the server process of its last commit, on PostgreSQL.
        is_there: it has come to where something was to happen to it.
    """

    def __init__(
        self, delivery: Delivery, number: int, reach: Reach, changed: threading.Condition | None = None
    ) -> None:
        self.delivery = delivery
        self.number = number
        self.points: list[Point] = []
        self.is_open = False
        self.has_key = False
        self.has_turn = False
        self.is_dead = False
        self.is_lost = False
        self.is_acknowledged = False
        self.has_ended = False
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.backend: int | None = None
        self.is_there = False
        self.real: Link = delivery.link
        self._reach = reach
        self._changed = threading.Condition() if changed is None else changed
        self._counts: dict[str, int] = {}

    def count(self, what: str) -> int:
        """Return how many there were of something, this one included."""
        self._counts[what] = self._counts.get(what, 0) + 1
        return self._counts[what]

    def at(self, side: Side, step: str) -> Future[None] | None:
        """Reach a point; returns what the thread has to wait for, if it freezes there.

        Raises:
            Crashed: the worker is dead, or dies here.
        """
        if self.is_dead:
            raise Crashed
        point = Point(side, step)
        self.points.append(point)
        held = self._reach(self, point)
        if self.is_dead:
            raise Crashed
        return held

    def survives(self, side: Side, step: str) -> bool:
        """Reach a point where nobody catches what is raised; False if the worker is dead."""
        try:
            held = self.at(side, step)
            if held is not None:
                held.result()
        except Crashed:
            return False
        return True

    def die(self) -> None:
        """Kill the worker."""
        self.is_dead = self.is_lost = True
        self.arrive()

    def freeze(self) -> Future[None]:
        """Freeze the worker for so long that the broker takes the delivery away."""
        self.is_lost = True
        self.arrive()
        return Future()

    def arrive(self) -> None:
        """Note that it has come to where something happens to it."""
        with self._changed:
            self.is_there = True
            self._changed.notify_all()

    def give_back(self) -> None:
        """Let the broker deliver again what a dead or frozen worker held."""
        if not self.is_acknowledged:
            self.real.requeue(self.delivery.tag)


class WatchedLink:
    """The settling side of a delivery; says nothing to the broker once the worker is dead.

    Parameters:
        life: of the delivery.
        on_end: called when the broker has removed it.
    """

    def __init__(self, life: Life, on_end: Callable[[Life], None]) -> None:
        self._life = life
        self._on_end = on_end

    @property
    def alive(self) -> bool:
        """Whether the broker still counts the delivery as this worker's."""
        return not self._life.is_lost and self._life.real.alive

    def ack(self, tag: int) -> None:
        """Remove the delivery from its queue."""
        life = self._life
        if life.is_lost or life.is_acknowledged:
            return
        if not life.survives("before", ACKNOWLEDGEMENT) or life.is_lost:
            return
        life.is_acknowledged = True
        life.real.ack(tag)
        self._on_end(life)
        life.survives("after", ACKNOWLEDGEMENT)

    def requeue(self, tag: int) -> None:
        """Give the delivery back to its queue."""
        if not self._life.is_lost:
            self._life.real.requeue(tag)

    def reject(self, tag: int) -> None:
        """Let the broker dead-letter the delivery."""
        if not self._life.is_lost:
            self._life.is_acknowledged = True
            self._life.real.reject(tag)
            self._on_end(self._life)
