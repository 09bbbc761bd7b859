"""What can a middleware do to a job, and what can it not? Every test runs on RabbitMQ and in memory."""

from __future__ import annotations

from typing import Any

import dramatiq
import pytest
from dramatiq.middleware import Middleware, SkipMessage

from middleware.transport.delivery import current_delivery
from middleware.transport.evidence import ATTEMPT, KIND, REASON
from tests.brokers import QUEUE, build_middleware
from tests.fixtures_broker import MakeRig
from tests.journal import Journal


def current_attempt() -> int:
    """Return the number of the attempt that this thread is."""
    delivery = current_delivery()
    return delivery.attempt if delivery is not None else 0


class FailsBefore(Middleware):
    """Marks jobs as failed before they run."""

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:
        message.fail()


class SkipsBefore(Middleware):
    """Keeps jobs from running, and counts them."""

    def __init__(self) -> None:
        self.skipped = Journal()

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:
        self.skipped.note(message.message_id)
        raise SkipMessage("not today")


class RaisesEverywhere(Middleware):
    """Has a bug in each of its hooks."""

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:
        raise ZeroDivisionError

    def after_process_message(self, broker: dramatiq.Broker, message: Any, **result: Any) -> None:
        raise ZeroDivisionError

    def after_ack(self, broker: dramatiq.Broker, message: Any) -> None:
        raise ZeroDivisionError

    def before_enqueue(self, broker: dramatiq.Broker, message: Any, delay: int | None) -> None:
        raise ZeroDivisionError


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_job_that_a_middleware_fails_is_dead(make_rig: MakeRig, place: str) -> None:
    """A job that a middleware marks as failed before it runs is a dead letter; it has not completed."""
    ours = build_middleware()
    rig = make_rig(middleware=[FailsBefore(), *ours] if place == "first" else [*ours, FailsBefore()])
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note() -> None:
        journal.note("ran")

    rig.start()
    note.send()
    (letter,) = rig.wait_for_dead_letters()
    assert letter.headers[KIND] == "unexpected"
    assert "middleware" in letter.headers[REASON]
    rig.assert_nothing_left(dead=1)
    assert not journal.entries


def test_a_skipped_job_is_discarded(make_rig: MakeRig) -> None:
    """A job that a middleware skips without failing it is dropped, as in Dramatiq."""
    skips = SkipsBefore()
    rig = make_rig(middleware=[*build_middleware(), skips])
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def note() -> None:
        journal.note("ran")

    rig.start()
    message = note.send()
    assert skips.skipped.wait_for(1) == [message.message_id]
    rig.assert_nothing_left()
    assert not journal.entries


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_hook_that_raises_loses_no_job(make_rig: MakeRig, place: str) -> None:
    """A middleware with a bug in its hooks changes no outcome: jobs complete, are retried and die as ever."""
    ours = build_middleware(max_retries=1)
    rig = make_rig(
        middleware=[RaisesEverywhere(), *ours] if place == "first" else [*ours, RaisesEverywhere()]
    )
    journal = Journal()

    @dramatiq.actor(broker=rig.broker, queue_name=QUEUE)
    def run(fails: bool) -> None:
        journal.note((fails, current_attempt()))
        if fails:
            raise RuntimeError("fails")

    rig.start()
    run.send(False)
    run.send(True)
    (letter,) = rig.wait_for_dead_letters()
    assert letter.headers[ATTEMPT] == 2
    rig.assert_nothing_left(dead=1)
    assert sorted(journal.entries) == [(False, 1), (True, 1), (True, 2)]
