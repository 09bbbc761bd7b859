"""Is a `job_id` free again in every case, and does waiting for one end?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import dramatiq
import pytest
from dramatiq import Message
from sqlalchemy import text, update
from sqlalchemy.orm import Session

from middleware import NotEnqueued, enqueue, enqueue_all, send_with_options_async
from middleware.effects import submissions
from middleware.effects.submissions import Start
from middleware.store import Clock, Store, job_submissions
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead
from middleware.transport.submission import Submission

from ..brokers import QUEUE, build_quorum_broker
from ..rabbit import Rabbit
from ..waiting import wait_until
from .keyed_jobs import KeyedJobs, enter, entries, rows
from .late_jobs import late_actor
from .outbox_jobs import Held, MakeOutboxJobs, OutboxJobs, statements
from .sending_jobs import SendingJobs
from .test_submissions import TAKEN, submit, wait_until_free

FREED = "DELETE FROM job_submissions"


def with_id(jobs: KeyedJobs, actor: Any, *args: Any) -> Message[Any]:
    """Send a job under the id `x`."""
    message: Message[Any] = actor.send_with_options(args=args, job_id="x")
    return message


def test_a_keyed_job_frees_its_id_in_its_commit(sending: SendingJobs) -> None:
    """The id is taken as long as the effect is not there, and free as soon as it is."""
    written = statements(sending.store.engine)

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)

    message = with_id(sending, act, "a")
    assert sending.wait_for(message).outcome == COMPLETED
    assert rows(sending.store.engine, TAKEN) == []
    if sending.kind == "def":
        order = [each.split(" (")[0] for each in written if each.startswith((FREED, "INSERT INTO credit"))]
        assert order[0] == "INSERT INTO credit_entries"
        assert order[1].startswith(FREED)
    sending.put(message)
    assert sending.wait_for(message, deliveries=2).outcome == DUPLICATE


def test_a_keyed_job_that_fails_frees_nothing_in_its_transaction(sending: SendingJobs) -> None:
    """An effect that is rolled back takes the freeing along; the dead letter frees the id."""
    seen: list[Any] = []

    @sending.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        enter(session, one)
        enter(session, one)

    message = with_id(sending, act, "a")
    ended = sending.wait_for(message)
    assert isinstance(ended.outcome, Dead)
    assert entries(sending.store) == seen
    wait_until(lambda: not rows(sending.store.engine, TAKEN), what="the id to be free")


def test_a_late_job_frees_its_id_in_its_commit(sending: SendingJobs) -> None:
    """The block of the effect frees the id."""
    act = late_actor(sending)
    assert sending.wait_for(with_id(sending, act, "a")).outcome == COMPLETED
    assert rows(sending.store.engine, TAKEN) == []


def test_an_async_actor_awaits_its_submissions(store: Store) -> None:
    """In an `async def` actor a job with an id is awaited; without await it is refused."""

    jobs = SendingJobs(store, "async def")

    async def act(one: str) -> None:
        with pytest.raises(NotEnqueued, match="await send_with_options_async"):
            jobs.note.send_with_options(args=("sync",), job_id="y")
        first = await send_with_options_async(jobs.note, args=("a",), job_id="y")
        again = await send_with_options_async(jobs.note, args=("b",), job_id="y")
        assert first.message_id == again.message_id

    actor = jobs.declare(act, "act", idempotency_key="act:{one}")
    assert jobs.run(actor, "1").outcome == COMPLETED
    assert jobs.journal.wait_for(1) == [("a",)]
    jobs.wait_until_done()
    jobs.close()


def test_a_keyed_actor_submits_in_its_transaction(sync_sending: SendingJobs) -> None:
    """A submission of a keyed actor that fails leaves the id free."""
    jobs = sync_sending

    @jobs.actor("enter:{one}")
    def act(session: Session, one: str, *_: Any) -> None:
        jobs.note.send_with_options(args=(one,), job_id="y")
        if one == "fails":
            raise RuntimeError

    assert isinstance(jobs.run(act, "fails").outcome, Dead)
    assert rows(jobs.store.engine, TAKEN) == []
    assert jobs.run(act, "a").outcome == COMPLETED
    assert jobs.journal.wait_for(1) == [("a",)]
    jobs.wait_until_done()


def test_waiting_for_another_submitter_ends(postgresql: Store, rabbit: Rabbit) -> None:
    """An open transaction holds up another submitter for 5 s, whose own transaction stays usable."""
    jobs = OutboxJobs(postgresql, rabbit.url)
    with jobs.session() as holder, jobs.session() as session:
        enqueue(holder, jobs.note.message("first"), "x", broker=jobs.broker)
        session.execute(text("SET LOCAL lock_timeout = 0"))
        with pytest.raises(
            NotEnqueued, match="job_id 'x' to be free to submit, got: somebody else"
        ) as caught:
            enqueue(session, jobs.note.message("second"), "x", broker=jobs.broker)
        assert [message.args for message in caught.value.refused] == [("second",)]
        assert session.execute(text("SELECT current_setting('lock_timeout')")).scalar() == "0"
        enqueue(session, jobs.note.message("other"), "y", broker=jobs.broker)
        assert session.execute(text("SELECT current_setting('lock_timeout')")).scalar() == "0"
        session.commit()
        holder.commit()
    jobs.start()
    jobs.assert_ran("first", "other")
    jobs.close()


def test_many_ids_are_taken_in_one_order(postgresql: Store, rabbit: Rabbit) -> None:
    """Senders of the same ids in opposite orders wait for each other, never crosswise."""
    jobs = OutboxJobs(postgresql, rabbit.url)
    ready = threading.Barrier(8)

    def send(number: int) -> list[str]:
        ids = [f"id {each}" for each in range(20)][:: -1 if number % 2 else 1]
        messages = [jobs.note.message_with_options(args=(each,), job_id=each) for each in ids]
        ready.wait(20)
        with jobs.session() as session, session.begin():
            taken = enqueue_all(session, messages, broker=jobs.broker)
        assert [message.args[0] for message in taken] == ids
        return [message.message_id for message in sorted(taken, key=lambda message: str(message.args))]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(send, range(8)))
    assert all(each == found[0] for each in found)
    jobs.start()
    jobs.assert_ran(*(f"id {each}" for each in range(20)))
    jobs.close()


def _age(jobs: OutboxJobs, **columns: Any) -> None:
    with jobs.store.writing() as connection:
        connection.execute(update(job_submissions).values(**columns))


@pytest.mark.parametrize(
    ("mode", "columns", "is_freed"),
    [
        ("drop", {"seen_at": Clock(-3700)}, True),
        ("drop", {"seen_at": Clock(-3500)}, False),
        ("replace", {"seen_at": Clock(-3700)}, True),
        ("drop", {"ending_at": Clock(-61)}, True),
        ("drop", {"ending_at": Clock(-30)}, False),
        ("throttle", {"window_until": Clock(-1)}, True),
        ("throttle", {"seen_at": Clock(-3700)}, False),
    ],
)
def test_a_sweep_frees_what_a_crash_left(
    outbox_jobs: OutboxJobs, mode: str, columns: dict[str, Any], is_freed: bool
) -> None:
    """Ids of jobs that nothing was heard of, of dead letters nobody confirmed, of windows that are over."""
    jobs = outbox_jobs
    submit(jobs, "a", mode=mode, job_window=60_000)
    jobs.wait_until_empty()
    _age(jobs, **columns)
    with jobs.store.stateless() as connection:
        assert submissions.sweep(connection, timedelta(hours=1)) == is_freed
    assert rows(jobs.store.engine, TAKEN) == ([] if is_freed else ["x"])


def test_a_sweep_lets_the_last_one_run(outbox_jobs: OutboxJobs) -> None:
    """In `keep_last` a dead letter that nobody confirmed holds up its successor for a minute at most."""
    jobs = outbox_jobs
    first, last = (Submission("x", "keep_last", generation=number) for number in (1, 2))

    def ask(question: Callable[..., Any], *arguments: Any) -> Any:
        with jobs.store.stateless() as connection:
            return question(connection, *arguments)

    running = submit(jobs, "running", mode="keep_last").message_id
    assert ask(submissions.start, first, running) is Start.RUN
    kept = submit(jobs, "kept", mode="keep_last").message_id
    assert ask(submissions.start, last, kept) is Start.BUSY
    ask(submissions.is_dying, first, running)
    ask(submissions.sweep, timedelta(hours=1))
    assert ask(submissions.start, last, kept) is Start.BUSY
    _age(jobs, ending_at=Clock(-61))
    ask(submissions.sweep, timedelta(hours=1))
    assert ask(submissions.start, last, kept) is Start.RUN
    ask(submissions.end, first, running)
    assert rows(jobs.store.engine, "SELECT running FROM job_submissions") == [kept]


def test_a_job_that_waits_in_the_outbox_is_not_forgotten(make_outbox_jobs: MakeOutboxJobs) -> None:
    """As long as the broker is away, an id stays taken, however long that is."""

    jobs = make_outbox_jobs()
    jobs.broker.use_outbound(Held())
    submit(jobs, "a")
    _age(jobs, seen_at=Clock(-3700))
    with jobs.store.stateless() as connection:
        assert submissions.sweep(connection, timedelta(hours=1)) == 0


def test_a_relay_sweeps(make_outbox_jobs: MakeOutboxJobs) -> None:
    """The maintenance frees what was left, and tells nobody who still waits for a job."""
    jobs = make_outbox_jobs()
    submit(jobs, "a")
    jobs.wait_until_empty()
    _age(jobs, ending_at=Clock(-61))
    jobs.relay()
    wait_until_free(jobs)


def test_a_redelivered_job_is_heard_of(make_outbox_jobs: MakeOutboxJobs) -> None:
    """A job that comes again after it began to die keeps its id until it ends."""
    jobs = make_outbox_jobs()
    submission = Submission("x")
    message = submit(jobs, "a")
    with jobs.store.stateless() as connection:
        submissions.is_dying(connection, submission, message.message_id)
        assert submissions.start(connection, submission, message.message_id) is Start.RUN
        assert connection.execute(job_submissions.select()).one().ending_at is None
        submissions.end(connection, submission, "another message")
        assert rows(jobs.store.engine, TAKEN) == ["x"]
        submissions.end(connection, submission, message.message_id)
    assert rows(jobs.store.engine, TAKEN) == []


def test_a_broker_without_a_ledger_refuses_ids(rabbit: Rabbit) -> None:
    """A job_id that nobody looks at is no promise: the send is refused."""
    broker = build_quorum_broker(rabbit.url)
    with pytest.raises(NotEnqueued, match="with a Ledger in the broker's middleware list"):
        broker.enqueue(Message(QUEUE, "note", (), {}, {"job_id": "x"}))
    broker.close()


def test_without_the_database_a_submission_is_refused(
    make_outbox_jobs: MakeOutboxJobs, postgresql: Store
) -> None:
    """A job with an id is written in the database: if that is away, it is certainly not stored."""
    gone = Store(postgresql.url.set(port=1).render_as_string(hide_password=False))
    jobs = make_outbox_jobs(store=gone)
    with pytest.raises(NotEnqueued, match="expected the database to take jobs with a job_id"):
        submit(jobs, "a")
    jobs.note.send("b")  # published: no database is needed


def test_what_follows_a_job_has_no_id(outbox_jobs: OutboxJobs) -> None:
    """A next step that was given a job_id would go past it: the pipeline is refused."""
    jobs = outbox_jobs
    steps = [jobs.note.message("a"), jobs.note.message_with_options(job_id="x")]
    with pytest.raises(NotEnqueued, match="expected option pipe_target to be a message without a job_id"):
        dramatiq.pipeline(steps, broker=jobs.broker).run()
