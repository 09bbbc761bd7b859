"""Which scenarios does a job need, now that its steps are known?"""

from __future__ import annotations

from collections.abc import Iterator

from .life import ACKNOWLEDGEMENT, COMMIT, Point
from .scenarios import Crash, CrashAroundRetry, Scenario, Stall, Together, Twice
from .steps import KEY
from .watching import CONFIRM, PUBLISH


def scenarios(points: list[Point], *, can_end: bool, is_parallel: bool) -> Iterator[Scenario]:
    """Yield what may go wrong with a job.

    Parameters:
        points: those that it reaches when nothing goes wrong.
        can_end: whether its database ends the transaction of a frozen worker.
        is_parallel: whether two deliveries of its queue may run at a time.
    """
    yield Twice()
    for index, point in enumerate(points):
        yield Crash(index, point, f"a crash {_words(points, index)}")
    if points[0].step != ACKNOWLEDGEMENT:
        yield from _around_retry()
    if not is_parallel:
        return
    for index, point in enumerate(points):
        if point.step != ACKNOWLEDGEMENT and point.step not in (PUBLISH, CONFIRM):
            yield from _two_at_a_time(points, index, can_end=can_end)


def _around_retry() -> Iterator[Scenario]:
    failed = "a failed attempt and a crash"
    yield CrashAroundRetry(Point("before", PUBLISH), f"{failed} before its retry is published")
    yield CrashAroundRetry(Point("before", CONFIRM), f"{failed} before the confirm of its retry")
    yield CrashAroundRetry(
        Point("before", ACKNOWLEDGEMENT),
        f"{failed} after the confirm of its retry, before the acknowledgement",
    )


def _two_at_a_time(points: list[Point], index: int, *, can_end: bool) -> Iterator[Scenario]:
    point, where = points[index], _words(points, index)
    yield Stall(index, point, f"a worker that froze {where}, and came back")
    if point.side != "before" or not point.step.startswith(COMMIT):
        return
    yield Together(index, point, f"two deliveries at the same time, one of them held {where}")
    if can_end:
        yield Stall(
            index,
            point,
            f"a worker that froze {where}, and came back when the database had ended its transaction",
            is_ended=True,
        )
    if Point("before", KEY) in points[:index]:
        yield Stall(
            index, point, f"a worker that froze {where}, and came back after a long time", is_long=True
        )


def _words(points: list[Point], index: int) -> str:
    point = points[index]
    if point.side == "after" and index + 1 < len(points):
        return f"{point}, before {points[index + 1].step}"
    return str(point)
