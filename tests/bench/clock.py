"""How fast is a sender? Each way of sending is warmed up before the clock starts.

A sender's program ends with `report(…)`; `python -m PROGRAM --jobs 4000 --threads 8` prints one figure.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

M = TypeVar("M")

WARM_UP_SHARE: Final = 10
"""One job more for so many is sent before the clock starts: it connects and declares."""
_MS: Final = 1000.0
_pause: Final = threading.Event()

Send = Callable[[], object]
"""Sends one job and returns when the broker has confirmed it."""


@dataclass(frozen=True)
class Many(Generic[M]):
    """How jobs are sent many at once.

    Attributes:
        make: returns a job's message.
        send: takes messages and returns when the broker has confirmed all of them.
    """

    make: Callable[[], M]
    send: Callable[[list[M]], object]


def report(send: Send, many: Many[M] | None = None) -> None:
    """Print jobs/s, or with `--pause` the p99 of a send in milliseconds.

    Parameters:
        send: one job.
        many: many at once, for `--batch`.
    """
    given = options().parse_args()
    if given.pause:
        print(p99(paced(send, given.jobs, given.pause / _MS)) * _MS)
    elif given.batch:
        assert many is not None
        print(in_batches(many, given.jobs, given.batch, are_made=given.made))
    else:
        print(side_by_side(send, given.jobs, given.threads))


def in_batches(many: Many[M], jobs: int, batch: int, *, are_made: bool = False) -> float:
    """Return jobs/s of one batch after the other.

    Parameters:
        many: makes the messages and sends them.
        jobs: how many count.
        batch: how many at once.
        are_made: make all messages before the clock starts. Defaults to while it runs, batch by batch.
    """
    many.send([many.make() for _ in range(warm_up(jobs))])
    sizes = (min(batch, jobs - sent) for sent in range(0, jobs, batch))
    batches: Iterable[list[M]] = ([many.make() for _ in range(size)] for size in sizes)
    if are_made:
        batches = list(batches)
    started = time.perf_counter()
    for messages in batches:
        many.send(messages)
    return jobs / (time.perf_counter() - started)


def side_by_side(send: Send, jobs: int, threads: int) -> float:
    """Return jobs/s of all threads together, from their common start to the end of the last."""
    started: list[float] = []
    failures: list[BaseException] = []
    start = threading.Barrier(threads, action=lambda: started.append(time.perf_counter()))

    def work(share: int) -> None:
        try:
            for _ in range(warm_up(share)):
                send()
            start.wait()
            for _ in range(share):
                send()
        except BaseException as error:  # of a thread: told to its caller below
            failures.append(error)
            start.abort()

    shares = [jobs // threads + (number < jobs % threads) for number in range(threads)]
    workers = [threading.Thread(target=work, args=(share,)) for share in shares]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return jobs / (time.perf_counter() - started[0])


def paced(send: Send, jobs: int, pause: float) -> list[float]:
    """Return the seconds that each send took, one each `pause` seconds: nothing else is under way."""
    for _ in range(warm_up(jobs)):
        send()
    took = []
    for _ in range(jobs):
        started = time.perf_counter()
        send()
        took.append(time.perf_counter() - started)
        _pause.wait(max(0.0, pause - took[-1]))
    return took


def p99(values: Sequence[float]) -> float:
    """Return the value that 99 % do not exceed."""
    return sorted(values)[-(-len(values) * 99 // 100) - 1]


def warm_up(jobs: int) -> int:
    """Return how many jobs are sent before the clock starts."""
    return max(10, jobs // WARM_UP_SHARE)


def options() -> argparse.ArgumentParser:
    """Return the options of a sender's program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--made", action="store_true", help="make a batch's messages before the clock starts")
    parser.add_argument("--pause", type=float, default=0.0, help="milliseconds from one send to the next")
    return parser
