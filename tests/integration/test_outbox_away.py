"""What do commits notice of a broker that is away, and what becomes of their jobs? Nothing; they wait."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from middleware import OutboxFull, enqueue
from middleware.store import Clock, Store, job_outbox
from middleware.transport.publication import DELAYED, READY

from ..proxy import Proxy
from ..rabbit import Rabbit
from ..waiting import stays, wait_until
from .outbox_jobs import Held, MakeOutboxJobs, OutboxJobs


def test_a_commit_does_not_wait_for_a_broker_that_is_frozen(outbox_jobs: OutboxJobs, proxy: Proxy) -> None:
    """While the broker answers nothing the commit returns, its row is there; the job runs after the thaw."""
    jobs = outbox_jobs
    jobs.start()
    proxy.holds_answers.set()
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "a")
    assert len(jobs.waiting()) == 1  # the broker cannot have confirmed: the commit returned without it
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "b")
    # Longer than a claim: what is on its way stays claimed, and a relay leaves it alone.
    relay = jobs.relay()
    stays(lambda: len(jobs.waiting()) == 2, what="both rows to wait", seconds=7)
    proxy.holds_answers.clear()
    jobs.assert_ran("a", "b")
    relay.stop()


def test_a_commit_does_not_wait_for_a_broker_that_is_away(outbox_jobs: OutboxJobs, proxy: Proxy) -> None:
    """While no broker takes connections commits return; afterwards everything arrives, once."""
    jobs = outbox_jobs
    jobs.start()
    proxy.refuses.set()
    proxy.drop()
    for name in range(20):
        with jobs.session() as session, session.begin():
            jobs.enqueue(session, name)
    assert len(jobs.waiting()) == 20
    wait_until(lambda: proxy.refused > 2, what="connections to be refused")
    proxy.refuses.clear()
    jobs.assert_ran(*range(20))


def test_a_commit_neither_waits_nor_fails_when_the_outboxs_own_connection_does(
    make_outbox_jobs: MakeOutboxJobs, postgresql: Store
) -> None:
    """The thread that publishes may not reach the database: the commit does not notice, a relay delivers."""
    gone = Store(postgresql.url.set(port=1).render_as_string(hide_password=False))
    writer = make_outbox_jobs(store=gone)
    with Session(postgresql.engine) as session, session.begin():
        enqueue(session, writer.note.message("a"), broker=writer.broker)
    jobs = make_outbox_jobs(store=postgresql)
    assert len(jobs.waiting()) == 1
    jobs.start()
    jobs.relay()
    jobs.assert_ran("a")


def test_a_delayed_job_waits_in_the_broker_until_its_time(outbox_jobs: OutboxJobs) -> None:
    """A delay counts from the call that enqueues; the row is gone as soon as the broker has the job."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.session() as session, session.begin():
        began = time.time()
        jobs.enqueue(session, "a", delay=timedelta(seconds=2))
    jobs.wait_until_empty()
    assert not jobs.journal.entries
    jobs.assert_ran("a")
    assert time.time() >= began + 2


def test_waiting_does_not_lengthen_a_delay(postgresql: Store, rabbit: Rabbit) -> None:
    """What the broker is given is what is left of the delay at the moment of the write."""
    jobs = OutboxJobs(postgresql, rabbit.url)
    held = Held()
    jobs.broker.use_outbound(held)
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "a", delay=timedelta(seconds=20))
        jobs.enqueue(session, "b", delay=timedelta(milliseconds=100))
    wait_until(lambda: len(held.tickets) == 2, what="both jobs to be handed to the publisher")
    before = [ticket.publication for ticket in held.tickets]
    assert before[0].place == DELAYED
    stays(lambda: True, what="time to pass", seconds=0.5)
    for ticket in held.tickets:
        assert ticket.wanted is not None
        assert ticket.wanted()
    assert held.tickets[0].publication.ticks < before[0].ticks
    assert held.tickets[1].publication.place == READY
    jobs.close()


def test_what_is_overdue_is_not_delayed_again(outbox_jobs: OutboxJobs, proxy: Proxy) -> None:
    """A delayed job whose time came while the broker was away goes straight to its queue."""
    jobs = outbox_jobs
    proxy.refuses.set()
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "a", delay=timedelta(milliseconds=300))
    stays(lambda: len(jobs.waiting()) == 1, what="the row to wait", seconds=0.5)
    proxy.refuses.clear()
    jobs.wait_until_empty()
    jobs.start()
    jobs.assert_ran("a")


def test_a_full_outbox_takes_no_more(make_outbox_jobs: MakeOutboxJobs, proxy: Proxy) -> None:
    """Beyond the limit `enqueue` raises and names setting and way out; when there is room again, it takes."""
    jobs = make_outbox_jobs(outbox_limit=10)
    jobs.start()
    proxy.refuses.set()
    proxy.drop()
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, *range(10))
    with (
        jobs.session() as session,
        session.begin(),
        pytest.raises(OutboxFull, match=r"at most JOBS_OUTBOX_LIMIT \(10\).*jobsctl maintenance") as caught,
    ):
        jobs.enqueue(session, 10)
    assert len(caught.value.refused) == 1
    assert len(jobs.waiting()) == 10
    proxy.refuses.clear()
    jobs.assert_ran(*range(10))

    def has_room() -> bool:
        try:
            with jobs.session() as session, session.begin():
                jobs.enqueue(session, "again")
        except OutboxFull:
            return False
        return True

    wait_until(has_room, what="the outbox to take jobs again")
    wait_until(lambda: "again" in jobs.journal.entries, what="the job to run")


def test_what_is_published_or_rolled_back_takes_no_room(make_outbox_jobs: MakeOutboxJobs) -> None:
    """The limit is one of rows that wait: more may go through in a second, and others never be committed."""
    jobs = make_outbox_jobs(outbox_limit=10)
    jobs.start()
    for name in range(30):
        with jobs.session() as session:
            jobs.enqueue(session, "never")
            session.rollback()
        with jobs.session() as session, session.begin():
            jobs.enqueue(session, name)
        wait_until(lambda: len(jobs.waiting()) < 5, what="rows to be published")
    jobs.assert_ran(*range(30))


def test_another_process_sees_a_full_outbox(make_outbox_jobs: MakeOutboxJobs, proxy: Proxy) -> None:
    """A process learns of rows that others wrote with the first ones of its own."""
    proxy.refuses.set()
    first, second = make_outbox_jobs(outbox_limit=10), make_outbox_jobs(outbox_limit=10)
    with first.session() as session, session.begin():
        first.enqueue(session, *range(9))

    def is_refused() -> bool:
        try:
            with second.session() as session, session.begin():
                second.enqueue(session, "a")
        except OutboxFull:
            return True
        return False

    wait_until(is_refused, what="the other process to be refused")
    assert len(first.waiting()) < 15
    proxy.refuses.clear()


def test_a_row_that_somebody_else_has_claimed_is_left_to_them(outbox_jobs: OutboxJobs) -> None:
    """The process that wrote a row does not publish it after a relay has claimed it."""
    jobs = outbox_jobs
    jobs.start()
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "a")
        session.flush()
        session.execute(update(job_outbox).values(claimed_by="a relay", claimed_until=Clock(60)))
    stays(lambda: len(jobs.waiting()) == 1, what="the row to be left alone", seconds=1)
    assert jobs.journal.entries == []


def test_a_commit_does_not_fail_when_the_hook_does(outbox_jobs: OutboxJobs) -> None:
    """A session that somebody emptied of what the hook needs is committed all the same; a relay delivers."""
    jobs = outbox_jobs
    jobs.start()
    jobs.relay()
    with jobs.session() as session:
        jobs.enqueue(session, "a")
        session.info.clear()
        session.commit()
    jobs.assert_ran("a")
