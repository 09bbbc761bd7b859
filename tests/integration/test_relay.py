"""Does what a process committed and could not publish arrive, once, whatever is wrong with other rows?"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dramatiq import Message
from sqlalchemy import event, update

from middleware.effects.outbox import Relay
from middleware.effects.outbox.row import OutboxRow
from middleware.effects.outbox.rows import claim_left_over
from middleware.store import Clock, Store, job_outbox
from middleware.transport.publication import READY, Publication, Result

from ..brokers import QUEUE
from ..proxy import Proxy
from ..rabbit import Rabbit
from ..waiting import stays, wait_until
from .outbox_jobs import Held, MakeOutboxJobs, OutboxJobs

DEAD = "a process that is gone"


def leave(jobs: OutboxJobs, *names: Any, claim_seconds: float = -1.0, **columns: Any) -> None:
    """Leave rows as a process does that committed them and died."""
    with jobs.session() as session, session.begin():
        for name in names:
            message: Message[Any] = jobs.note.message(name)
            publication = Publication(
                QUEUE, READY, message.encode(), message.message_id, "note", 1_700_000_000
            )
            session.add(OutboxRow(publication, None, DEAD))
        session.flush()
        changes = {"claimed_until": Clock(claim_seconds), **columns}
        session.execute(update(job_outbox).where(job_outbox.c.refusals == 0).values(changes))


def test_a_relay_publishes_what_was_left_over(outbox_jobs: OutboxJobs) -> None:
    """Rows whose claim is over are published, each once, and removed."""
    jobs = outbox_jobs
    leave(jobs, *range(50))
    jobs.start()
    jobs.relay()
    jobs.assert_ran(*range(50))


def test_a_relay_leaves_rows_that_somebody_else_has_claimed(outbox_jobs: OutboxJobs) -> None:
    """A row is its writer's as long as the claim holds; then it is the relay's."""
    jobs = outbox_jobs
    leave(jobs, "a", claim_seconds=2.5)
    jobs.start()
    jobs.relay()
    stays(lambda: jobs.waiting()[0].claimed_by == DEAD, what="the row to be left alone", seconds=1.5)
    jobs.assert_ran("a")


def test_any_number_of_relays_publish_each_row_once(make_outbox_jobs: MakeOutboxJobs) -> None:
    """Three relays, each with a broker of its own, share 2,000 rows: none is published twice."""
    several = [make_outbox_jobs() for _ in range(3)]
    jobs = several[0]
    leave(jobs, *range(2000))
    jobs.start()
    for each in several:
        each.relay()
    jobs.assert_ran(*range(2000))


def test_a_row_that_cannot_be_published_holds_up_no_other(
    outbox_jobs: OutboxJobs, caplog: pytest.LogCaptureFixture
) -> None:
    """A row of an unknown queue, or with a body that no message is, stays or dies alone; neither is lost."""
    jobs = outbox_jobs
    leave(jobs, "stuck", queue="gone", refusals=1)
    leave(jobs, "nonsense", body=b"\x00\xff nonsense", refusals=2)
    leave(jobs, *range(700))
    jobs.start()
    with caplog.at_level(logging.ERROR):
        jobs.relay()
        wait_until(lambda: len(jobs.waiting()) == 1, what="all rows but one to be published")
    assert sorted(jobs.journal.wait_for(700)) == list(range(700))
    row = jobs.wait_for_problem()
    assert row.queue == "gone"
    assert "expected its queue to be declared here, got: 'gone'" in row.problem
    assert row.refusals > 1
    assert row.message_id in caplog.text
    assert "again_in_seconds" in caplog.text
    wait_until(lambda: jobs.broker.queue_counts(QUEUE).failed == 1, what="the nonsense to be a dead letter")


def test_a_row_that_no_ladder_holds_waits_until_one_does(
    outbox_jobs: OutboxJobs, caplog: pytest.LogCaptureFixture
) -> None:
    """A row due later than delays may last here, as after the setting was lowered, disturbs no other."""
    jobs = outbox_jobs
    leave(jobs, "far", due_at=datetime.now(UTC) + timedelta(hours=1))
    jobs.start()
    jobs.relay()
    assert "expected it to be due within JOBS_MAX_DELAY" in jobs.wait_for_problem().problem
    assert "channel_closed" not in caplog.text
    with jobs.store.writing() as connection:
        connection.execute(update(job_outbox).values(due_at=datetime.now(UTC) + timedelta(seconds=1)))
    jobs.assert_ran("far")


def test_a_job_without_a_delay_is_due_whatever_time_it_is(outbox_jobs: OutboxJobs) -> None:
    """What was left over by a host whose clock is an hour ahead does not wait for an hour."""
    jobs = outbox_jobs
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "a")
        session.flush()
        (row,) = session.execute(job_outbox.select()).all()
        assert row.due_at == row.enqueued_at
        later = datetime.now(UTC) + timedelta(hours=1)
        session.execute(update(job_outbox).values(enqueued_at=later, due_at=later, claimed_until=Clock(-1)))
    jobs.relay()
    jobs.start()
    jobs.assert_ran("a")


def test_what_the_broker_refuses_is_tried_again(outbox_jobs: OutboxJobs, rabbit: Rabbit) -> None:
    """A publish that the broker refuses leaves its row and the reason, and is tried until it is accepted."""
    jobs = outbox_jobs
    jobs.note.send(-1)  # declares the queue
    rabbit.set_policy(f"^{QUEUE}$", max_length=1)
    rabbit.wait_for_policy(QUEUE, max_length=1)
    sent: list[int] = []

    def one_more_is_refused() -> bool:  # the limit is soft by a few messages
        with jobs.session() as session, session.begin():
            jobs.enqueue(session, len(sent))
        sent.append(len(sent))
        return any(row.problem for row in jobs.waiting())

    wait_until(one_more_is_refused, what="a row's problem")
    assert jobs.wait_for_problem().refusals >= 1
    jobs.relay()
    rabbit.delete_policy()
    jobs.start()
    jobs.assert_ran(-1, *sent)


def test_a_publish_without_a_confirm_is_repeated(outbox_jobs: OutboxJobs, proxy: Proxy) -> None:
    """A row whose publish was written and never confirmed is published again: at least once, not at most."""
    jobs = outbox_jobs
    jobs.note.send("first")
    proxy.holds_requests.set()
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "a")
    lanes = jobs.broker.publisher._publishing._lanes
    wait_until(lambda: any(lane.in_flight for lane in lanes), what="the publish to be written")
    proxy.drop()
    proxy.holds_requests.clear()
    row = jobs.wait_for_problem()
    assert row.problem.startswith("may be stored: ")
    jobs.relay()
    jobs.start()
    jobs.assert_ran("first", "a")


def test_a_broker_that_is_away_is_waited_for_without_a_storm(outbox_jobs: OutboxJobs) -> None:
    """With nothing published, so many rows of a queue are held claimed and no more are read."""
    jobs = outbox_jobs
    held = Held()
    jobs.broker.use_outbound(held)
    leave(jobs, *range(2500))
    jobs.relay()
    wait_until(lambda: len(held.tickets) >= 1000, what="rows to be on their way")
    stays(lambda: len(held.tickets) <= 1500, what="no more rows to be read", seconds=6.5)
    assert len({ticket.publication.message_id for ticket in held.tickets}) == len(held.tickets)
    assert all(ticket.wanted and ticket.wanted() for ticket in held.tickets)  # still claimed, after 6.5 s


def test_a_full_queue_holds_up_no_other(make_outbox_jobs: MakeOutboxJobs, proxy: Proxy) -> None:
    """Rows of another queue are published although as many as fit of one queue are on their way."""
    jobs = make_outbox_jobs()
    held = Held()
    jobs.broker.use_outbound(held)
    leave(jobs, *range(1500), refusals=1)
    jobs.relay()
    wait_until(lambda: len(held.tickets) >= 1000, what="rows to be on their way")
    leave(jobs, "other", queue="other")
    row = jobs.wait_for_problem()
    assert row.queue == "other"


def test_a_relay_that_stops_gives_back_what_it_has_not_written(outbox_jobs: OutboxJobs) -> None:
    """Another relay does not have to wait until the claims of one that was stopped are over."""
    jobs = outbox_jobs
    jobs.broker.use_outbound(held := Held())
    leave(jobs, *range(10))
    relay = jobs.relay()
    wait_until(lambda: len(held.tickets) == 10, what="rows to be on their way")
    relay.stop()
    with jobs.store.engine.connect() as connection:
        free = connection.execute(job_outbox.select().where(job_outbox.c.claimed_until <= Clock())).all()
    assert len(free) == 10
    assert not any(ticket.claim() for ticket in held.tickets), "expected none to be written any more"


def test_a_stale_claim_writes_nothing(outbox_jobs: OutboxJobs) -> None:
    """A relay whose row somebody else has claimed, as after it was frozen, does not publish it any more."""
    jobs = outbox_jobs
    jobs.broker.use_outbound(held := Held())
    leave(jobs, "a")
    jobs.relay()
    (ticket,) = wait_until(lambda: held.tickets, what="the row to be on its way")
    assert ticket.wanted is not None
    assert ticket.wanted()
    with jobs.store.writing() as connection:
        connection.execute(update(job_outbox).values(claimed_by="another", claimed_until=Clock(60)))
    wait_until(lambda: ticket.wanted and not ticket.wanted(), what="the claim to be over")
    ticket.end(Result.REFUSED, "not wanted")
    stays(lambda: jobs.waiting()[0].claimed_by == "another", what="the row to be the other's", seconds=1.5)
    assert jobs.waiting()[0].refusals == 0


def test_a_database_that_is_away_is_waited_for(
    make_outbox_jobs: MakeOutboxJobs, postgresql: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A relay that loses its database says so once and goes on when it is back."""
    proxy = Proxy(postgresql.url.render_as_string(hide_password=False))
    away = Store(proxy.url)
    jobs = make_outbox_jobs(store=postgresql)
    jobs.start()
    relay = Relay(away, jobs.broker)
    relay.start()
    wait_until(lambda: proxy.accepted, what="the relay to connect")
    proxy.refuses.set()
    proxy.drop()
    wait_until(lambda: proxy.refused > 1, what="the relay to try again")
    leave(jobs, "a")
    assert caplog.text.count("outbox.database_away") == 1
    proxy.refuses.clear()
    jobs.assert_ran("a")
    relay.stop()
    away.dispose()
    proxy.close()


def test_claims_last_for_seconds(outbox_jobs: OutboxJobs) -> None:
    """A row is born claimed for a few seconds: enough to publish it, and soon over if its process dies."""
    jobs = outbox_jobs
    jobs.broker.use_outbound(Held())
    with jobs.session() as session, session.begin():
        jobs.enqueue(session, "a", delay=timedelta(days=0))
        session.flush()
        born = session.execute(job_outbox.select().where(job_outbox.c.claimed_until > Clock(3))).all()
        late = session.execute(job_outbox.select().where(job_outbox.c.claimed_until > Clock(10))).all()
    assert (len(born), len(late)) == (1, 0)


def test_looking_for_rows_reads_no_others(make_outbox_jobs: MakeOutboxJobs, postgresql: Store) -> None:
    """A look at a full outbox costs what it finds: those that are claimed are not even read."""
    jobs = make_outbox_jobs(store=postgresql)
    looks: list[Any] = []
    with postgresql.stateless() as connection:
        event.listen(connection, "before_cursor_execute", lambda _c, _cursor, *look: looks.append(look[:2]))
        claim_left_over(connection, "a relay", most=10, without=jobs.broker.specs)
        (statement, parameters) = looks[0]
        connection.exec_driver_sql("SET enable_seqscan = off")  # or a table without rows is read as a whole
        plan = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).scalars().all()
        connection.exec_driver_sql("SET enable_seqscan = on")
    assert any("Index Cond: (claimed_until <" in line for line in plan), plan
