"""What becomes of a job that is submitted again while it is unfinished, in each mode?"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from dramatiq import Message
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from middleware import NotEnqueued, enqueue, enqueue_async, send_with_options_async
from middleware.store import Clock, job_outbox, job_submissions
from middleware.transport.delivery import current_delivery

from ..brokers import QUEUE
from ..journal import Gate
from ..waiting import stays, wait_until
from .keyed_jobs import rows
from .outbox_jobs import OutboxJobs

TAKEN = "SELECT job_id FROM job_submissions ORDER BY job_id"


def wait_until_free(jobs: OutboxJobs) -> None:
    """Wait until no id is taken."""
    wait_until(lambda: not rows(jobs.store.engine, TAKEN), what="every id to be free")


def submit(jobs: OutboxJobs, *args: Any, mode: str = "drop", **options: Any) -> Message[Any]:
    """Send a job under the id `x`."""
    return jobs.note.send_with_options(args=args, job_id="x", job_mode=mode, **options)


def _send(jobs: OutboxJobs, number: int) -> Message[Any]:
    return submit(jobs, number)


def _enqueue(jobs: OutboxJobs, number: int) -> Message[Any]:
    with Session(jobs.store.engine) as session, session.begin():
        return enqueue(session, jobs.note.message(number), "x", broker=jobs.broker)


@pytest.mark.parametrize("way", [_send, _enqueue])
def test_fifty_submitters_submit_one_job(
    outbox_jobs: OutboxJobs, way: Callable[[OutboxJobs, int], Message[Any]]
) -> None:
    """Fifty threads that submit one id get one message; it runs once, and its id is free again afterwards."""
    jobs = outbox_jobs
    if way is _enqueue and jobs.store.is_sqlite:
        threads, ready = 8, threading.Barrier(8)  # sessions of an application take no turns: SQLite polls
    else:
        threads, ready = 50, threading.Barrier(50)

    def run(number: int) -> Message[Any]:
        ready.wait(20)
        return way(jobs, number)

    with ThreadPoolExecutor(threads) as pool:
        messages = list(pool.map(run, range(threads)))
    assert len({message.message_id for message in messages}) == 1
    assert len({message.args for message in messages}) == 1, "expected the first submission's message"
    jobs.start()
    jobs.assert_ran(messages[0].args[0])
    wait_until_free(jobs)
    again = submit(jobs, 1000)
    assert again.message_id != messages[0].message_id
    jobs.assert_ran(messages[0].args[0], 1000)


def test_an_id_is_free_if_its_transaction_rolls_back(outbox_jobs: OutboxJobs) -> None:
    """A submission that was never committed holds up no other."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.session() as session:
        enqueue(session, jobs.note.message("rolled back"), "x", broker=jobs.broker)
        session.rollback()
    submit(jobs, "a")
    jobs.assert_ran("a")


def test_a_job_is_unfinished_until_it_has_ended(outbox_jobs: OutboxJobs) -> None:
    """While it waits, runs, and waits for its retry, another submission is dropped; then it is a new job."""
    jobs, gate = outbox_jobs, Gate()

    def act(number: int) -> None:
        delivery = current_delivery()
        assert delivery is not None
        jobs.journal.note((number, delivery.attempt))
        gate.wait()
        if delivery.attempt == 1:
            raise RuntimeError("fails once")

    actor = jobs.declare(act, "act", max_retries=1, min_backoff=2500, max_backoff=2500)
    first = actor.send_with_options(args=(1,), job_id="x")
    assert actor.send_with_options(args=(2,), job_id="x").message_id == first.message_id
    jobs.start()
    jobs.journal.wait_for(1)
    assert actor.send_with_options(args=(3,), job_id="x").args == (1,)
    gate.open()
    wait_until(lambda: jobs.broker.queue_counts(QUEUE).delayed == 1, what="the retry to wait")
    assert actor.send_with_options(args=(3,), job_id="x").args == (1,)
    jobs.journal.wait_for(2)
    wait_until_free(jobs)
    assert jobs.journal.entries == [(1, 1), (1, 2)]
    assert actor.send_with_options(args=(4,), job_id="x").args == (4,)
    jobs.journal.wait_for(4)


def test_a_dead_letter_frees_its_id_when_the_broker_has_it(outbox_jobs: OutboxJobs) -> None:
    """A job that becomes a dead letter is finished."""
    jobs = outbox_jobs
    actor = jobs.declare(lambda: 1 // 0, "act", max_retries=0)
    actor.send_with_options(job_id="x")
    jobs.start()
    wait_until_free(jobs)
    wait_until(lambda: jobs.broker.queue_counts(QUEUE).failed == 1, what="the dead letter")


def test_throttle_takes_one_in_a_window(outbox_jobs: OutboxJobs) -> None:
    """In `throttle` another submission is dropped until the window is over, although the first has ended."""
    jobs = outbox_jobs
    jobs.start()
    first = submit(jobs, "first", mode="throttle", job_window=60_000)
    jobs.assert_ran("first")
    assert submit(jobs, "dropped", mode="throttle", job_window=60_000).message_id == first.message_id
    with jobs.store.writing() as connection:
        connection.execute(update(job_submissions).values(window_until=Clock(-0.1)))
    second = submit(jobs, "second", mode="throttle", job_window=60_000)
    assert second.args == ("second",)
    assert submit(jobs, "dropped", mode="throttle", job_window=60_000).message_id == second.message_id
    jobs.assert_ran("first", "second")


def test_debounce_runs_the_last_after_a_pause(outbox_jobs: OutboxJobs) -> None:
    """In `debounce` the job waits in the outbox; each submission takes the place of the one before."""
    jobs = outbox_jobs
    jobs.start()
    jobs.relay()
    for number in range(5):
        assert submit(jobs, number, mode="debounce", delay=4000).args == (number,)
    (row,) = jobs.waiting()
    assert row.claimed_by.startswith("nobody")
    assert jobs.journal.entries == []
    jobs.assert_ran(4)
    wait_until_free(jobs)
    submit(jobs, 5, mode="debounce", delay=100)
    jobs.assert_ran(4, 5)


def test_debounce_writes_anew_what_is_on_its_way(outbox_jobs: OutboxJobs) -> None:
    """A submission that comes when the one before has been claimed by a relay is another job."""
    jobs = outbox_jobs
    submit(jobs, "first", mode="debounce", delay=20_000)
    with jobs.store.writing() as connection:
        connection.execute(update(job_outbox).values(claimed_by="a relay"))
    for name in ("second", "third"):
        submit(jobs, name, mode="debounce", delay=20_000)
    assert [Message.decode(row.body).args for row in jobs.waiting()] == [("first",), ("third",)]


def test_debounce_within_one_transaction(outbox_jobs: OutboxJobs) -> None:
    """The last of several submissions of one transaction is written; the others leave nothing."""
    jobs = outbox_jobs
    with jobs.session() as session, session.begin():
        for number in range(3):
            message = jobs.note.message(number)
            enqueue(session, message, "x", job_mode="debounce", delay=200, broker=jobs.broker)
    assert len(jobs.waiting()) == 1
    jobs.start()
    jobs.relay()
    jobs.assert_ran(2)


def test_replace_discards_what_has_not_begun(outbox_jobs: OutboxJobs) -> None:
    """In `replace` the newest submission takes the place of all that have not started."""
    jobs = outbox_jobs
    for number in range(4):
        assert submit(jobs, number, mode="replace").args == (number,)
    jobs.wait_until_empty()
    jobs.start()
    jobs.assert_ran(3)


def test_a_superseded_job_that_comes_late_is_discarded(outbox_jobs: OutboxJobs) -> None:
    """A submission that is delivered after its successor has ended is discarded all the same."""
    jobs = outbox_jobs
    submit(jobs, "late", mode="replace", delay=1500)
    submit(jobs, "newest", mode="replace")
    jobs.start()
    jobs.journal.wait_for(1)
    wait_until(lambda: jobs.broker.queue_counts(QUEUE).delayed == 0, what="the late one to arrive")
    stays(lambda: jobs.journal.entries == ["newest"], what="the late one not to run", seconds=1)
    submit(jobs, "another", mode="replace")
    jobs.journal.wait_for(2)
    assert jobs.journal.entries == ["newest", "another"]


def test_keep_last_runs_the_last_when_the_running_one_has_ended(outbox_jobs: OutboxJobs) -> None:
    """In `keep_last` what runs goes on; of what is submitted meanwhile the last runs, after it."""
    jobs, gate = outbox_jobs, Gate()

    def act(name: str) -> None:
        jobs.journal.note(("began", name))
        if name == "first":
            gate.wait()
        jobs.journal.note(("ended", name))

    actor = jobs.declare(act, "act")
    jobs.start()
    options: dict[str, Any] = {"job_id": "x", "job_mode": "keep_last"}
    actor.send_with_options(args=("first",), **options)
    jobs.journal.wait_for(1)
    for name in ("second", "third", "fourth"):
        actor.send_with_options(args=(name,), **options)
    stays(lambda: jobs.journal.entries == [("began", "first")], what="the others to wait", seconds=1.5)
    gate.open()
    expected = [(what, name) for name in ("first", "fourth") for what in ("began", "ended")]
    assert jobs.journal.wait_for(4) == expected
    wait_until(lambda: jobs.broker.queue_counts(QUEUE).waiting == 0, what="the queue to be empty")
    stays(lambda: jobs.journal.entries == expected, what="no other to run", seconds=1.5)


async def _from_coroutines(jobs: OutboxJobs) -> None:

    first = await send_with_options_async(jobs.note, args=("a",), job_id="x")
    again = await send_with_options_async(jobs.note, args=("b",), job_id="x")
    assert again.message_id == first.message_id
    async with AsyncSession(jobs.store.async_engine) as session, session.begin():
        third = await enqueue_async(session, jobs.note.message("c"), "x", broker=jobs.broker)
        assert third.message_id == first.message_id
        await enqueue_async(session, jobs.note.message("d"), "y", broker=jobs.broker)
    await jobs.store.dispose_async()


def test_coroutines_submit_as_well(outbox_jobs: OutboxJobs) -> None:
    """`send_with_options_async` and `enqueue_async` take the same ids."""
    asyncio.run(_from_coroutines(outbox_jobs))
    outbox_jobs.start()
    outbox_jobs.assert_ran("a", "d")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"job_mode": "throttle"}, "to come with job_window"),
        ({"job_mode": "debounce"}, "to come with a delay"),
        ({"job_mode": "latest"}, "expected option job_mode to be one of drop, throttle, debounce, replace"),
        ({"job_id": ""}, "expected option job_id to be a string of 1 to 255 bytes"),
    ],
)
def test_a_wrong_submission_is_refused(
    outbox_jobs: OutboxJobs, options: dict[str, Any], complaint: str
) -> None:
    """What a mode needs, and which modes there are, is said at the call; nothing is written."""
    with pytest.raises(NotEnqueued, match=complaint):
        outbox_jobs.note.send_with_options(args=("a",), **{"job_id": "x", **options})
    assert outbox_jobs.waiting() == []
    assert rows(outbox_jobs.store.engine, TAKEN) == []
