"""What if a message is larger than the broker takes? It fails alone."""

from __future__ import annotations

import threading

import dramatiq
import pytest

from middleware import EnqueueError, EnqueueUnknown, NotEnqueued
from middleware.transport.delivery import current_delivery
from middleware.transport.evidence import ATTEMPT, TRACEBACK
from tests.brokers import QUEUE
from tests.control import Control
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.journal import Journal
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

pytestmark = pytest.mark.owned_services


@pytest.mark.parametrize(("limit", "size"), [(30_000, 40_000), (2_000, 4_000)], ids=["large", "small"])
def test_an_oversize_message_fails_alone(
    rabbit: Rabbit, make_broker: MakeBroker, control: Control, limit: int, size: int
) -> None:
    """While eight threads send, an oversize message is refused; of the others, none is lost silently."""
    sent: list[str] = []
    errors: list[EnqueueError] = []
    done = threading.Event()

    def send() -> None:
        while not done.is_set():
            try:
                sent.append(broker.enqueue(message()).message_id)
            except EnqueueError as error:
                errors.append(error)

    with control.max_message_size(limit):
        broker = make_broker()
        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(sent) > 100, what="the others to send")
        with pytest.raises(NotEnqueued, match=f"larger than.*{limit}"):
            broker.enqueue(message("x" * size))
        for _ in range(5):
            with pytest.raises(NotEnqueued, match=f"larger than.*{limit}"):
                broker.enqueue(message("x" * size))
        done.set()
        for thread in threads:
            thread.join()
    assert len(errors) <= len(threads), "expected only the first to disturb its neighbours"
    assert all(isinstance(error, EnqueueUnknown) for error in errors)
    if limit > 16 * 1024:
        assert not errors
    stored = [str(letter.properties.message_id) for letter in rabbit.letters(QUEUE)]
    assert len(stored) == len(set(stored))
    unknown = {each.message_id for error in errors for each in error.unknown}
    assert set(sent) <= set(stored) <= set(sent) | unknown


def test_a_body_that_just_fits_is_retried_to_the_end(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, control: Control
) -> None:
    """Retries add nothing to the body: where it fits once, all attempts happen, and one dead letter tells."""
    broker = make_broker()
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, max_retries=3)
    def fail(_text: str) -> None:
        current = current_delivery()
        journal.note(current and current.attempt)
        raise RuntimeError("fails " * 1000)

    job = fail.message("x" * 5000)
    with control.max_message_size(len(job.encode())):
        start(broker)
        broker.enqueue(job)
        (letter,) = rabbit.wait_for_letters(f"{QUEUE}.XQ")
    assert journal.entries == [1, 2, 3, 4]
    assert letter.body == job.encode()
    assert letter.headers[ATTEMPT] == 4
    assert "RuntimeError" in letter.headers[TRACEBACK]
    assert rabbit.ready(QUEUE) == 0
