"""Does a sender's clock count what it says?"""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from tests.bench.clock import Many, in_batches, p99, paced, side_by_side, warm_up


@pytest.mark.parametrize(("jobs", "threads"), [(100, 1), (100, 8), (7, 8)])
def test_threads_share_the_jobs(jobs: int, threads: int) -> None:
    """All threads together send each job once, after each has warmed up."""
    sent = Counter[int]()
    lock = threading.Lock()

    def send() -> None:
        with lock:
            sent[threading.get_ident()] += 1

    side_by_side(send, jobs, threads)
    shares = [jobs // threads + (number < jobs % threads) for number in range(threads)]
    assert sum(sent.values()) == jobs + sum(map(warm_up, shares))


def test_a_failing_thread_fails_the_measurement() -> None:
    """One thread's error ends the others' waiting and reaches the caller."""
    numbers = iter(range(45))

    def send() -> None:
        if next(numbers, None) is None:
            raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        side_by_side(send, 80, 8)


@pytest.mark.parametrize("are_made", [False, True])
def test_batches_cover_all_jobs(are_made: bool) -> None:
    """The last batch is as small as it has to be; the warm-up comes first."""
    batches: list[list[str]] = []
    in_batches(Many(lambda: "job", batches.append), 250, 100, are_made=are_made)
    assert [len(batch) for batch in batches] == [25, 100, 100, 50]


@pytest.mark.parametrize(("are_made", "events"), [(False, "m+m+m+"), (True, "mmm+++")])
def test_messages_are_made_when_it_is_said(are_made: bool, events: str) -> None:
    """They are made batch by batch while the clock runs, or all of them before it starts."""
    happened: list[str] = []
    many = Many(lambda: happened.append("m"), lambda _messages: happened.append("+"))
    in_batches(many, 3, 1, are_made=are_made)
    assert "".join(happened).removeprefix("m" * warm_up(3) + "+") == events


def test_paced_sends_are_timed_without_the_warm_up() -> None:
    """There is one time for each send that counts."""
    calls: list[None] = []
    assert len(paced(lambda: calls.append(None), 20, 0.0)) == 20
    assert len(calls) == 20 + warm_up(20)


@pytest.mark.parametrize(("number", "expected"), [(1, 1), (100, 99), (500, 495), (10, 10)])
def test_p99_is_a_value_that_occurred(number: int, expected: int) -> None:
    """It is the smallest value that 99 % of all do not exceed."""
    assert p99([float(value) for value in range(number, 0, -1)]) == expected
