"""What may a signal do to a send that it interrupts, and what may its handler send?"""

from __future__ import annotations

import random
import signal
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest

from middleware import EnqueueUnknown, NotEnqueued
from middleware.transport.publication import READY, Publication, Result, Ticket
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.integration.publisher_turn import wait_for_turn
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until


def test_an_exception_in_the_middle_of_a_send_gives_the_connection_up(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """A signal that ends a send leaves no half frame behind: the next send has a new connection."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))
    wait_for_turn(broker)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        proxy.holds_answers.set()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            broker.enqueue(message("interrupted"))
    finally:
        signal.signal(signal.SIGALRM, before)
        proxy.holds_answers.clear()
    last = message("last")
    broker.enqueue(last)
    assert rabbit.letters(QUEUE)[-1].body == last.encode()
    assert proxy.accepted == 2


def test_interrupts_at_any_moment_leave_a_publisher_that_publishes(
    rabbit: Rabbit, make_broker: MakeBroker
) -> None:
    """After a hundred sends that a signal ended somewhere, sends go on; what was confirmed is stored once."""
    broker = make_broker()
    dice = random.Random(1)
    confirmed: list[str] = []

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(100):
            with suppress(KeyboardInterrupt, NotEnqueued, EnqueueUnknown):
                signal.setitimer(signal.ITIMER_REAL, dice.uniform(0.00001, 0.0025))
                while True:
                    confirmed.append(broker.enqueue(message()).message_id)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    confirmed.append(broker.enqueue(message("last")).message_id)
    stored = Counter(str(letter.properties.message_id) for letter in rabbit.letters(QUEUE))
    assert {stored[each] for each in confirmed} == {1}
    assert max(stored.values()) == 1


def test_a_signals_handler_that_sends_in_the_middle_of_a_send_is_told(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """It gets NotEnqueued at once, instead of waiting for the send that waits for it."""
    broker = make_broker(url=proxy.url, publish_timeout=timedelta(seconds=30))
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    refused: list[str] = []

    def send(number: int, frame: object) -> None:
        try:
            broker.enqueue(message("from the handler"))
        except NotEnqueued as error:
            refused.append(str(error))
        proxy.holds_answers.clear()

    before = signal.signal(signal.SIGALRM, send)
    try:
        proxy.holds_answers.set()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        broker.enqueue(message("second"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(refused) == 1
    assert "signal" in refused[0]
    assert rabbit.ready(QUEUE) == 2


def test_a_signals_handler_that_sends_while_a_job_is_handed_in_is_told(
    proxy: Proxy, make_broker: MakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waking the thread that drives takes a lock that a handler's send would wait for: it is refused."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))
    publishing, refused = broker.publisher._publishing, list[str]()
    wake = publishing.wake

    def interrupted() -> None:
        monkeypatch.setattr(publishing, "wake", wake)
        signal.raise_signal(signal.SIGALRM)
        wake()

    def send(number: int, frame: object) -> None:
        with pytest.raises(NotEnqueued, match="signal") as error:
            broker.enqueue(message("from the handler"))
        refused.append(str(error.value))

    before = signal.signal(signal.SIGALRM, send)
    try:
        with broker.publisher._turn:  # as if another thread drove
            monkeypatch.setattr(publishing, "wake", interrupted)
            ticket = Ticket(Publication(QUEUE, READY, b"body", "handed in"), lambda _ticket: None)
            broker.publisher.submit([ticket])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(refused) == 1
    wait_until(lambda: ticket.result is Result.CONFIRMED, what="the job that was handed in to be stored")
    broker.enqueue(message("last"))
