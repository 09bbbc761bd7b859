"""Which thread drives the publisher's connection? The sender's own if nobody else does, and never a job's."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import timedelta

import dramatiq
import pytest

from middleware import EnqueueUnknown, NotEnqueued, Queue, QuorumBroker
from middleware.transport.publication import READY, Publication, Result, Ticket
from middleware.transport.sending import Countdown
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.integration.publisher_turn import wait_for_turn
from tests.journal import Journal
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import stays, wait_until


class Threads(Countdown):
    """Counts one ticket down and notes the thread that ended it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.names: list[str] = []

    def __call__(self, ticket: Ticket) -> None:
        """Note the thread."""
        self.names.append(threading.current_thread().name)
        super().__call__(ticket)


def drive(broker: QuorumBroker) -> tuple[bool, list[str]]:
    """Publish once; return whether the caller drove, and which threads ended the ticket."""
    countdown = Threads()
    ticket = Ticket(Publication(QUEUE, READY, message().encode(), "test"), countdown)
    has_driven = broker.publisher.drive([ticket], countdown, 10.0)
    if not has_driven:
        broker.publisher.submit([ticket])
    assert countdown.wait(10.0)
    assert ticket.result is Result.CONFIRMED
    return has_driven, countdown.names


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher's thread waits longer than a test does, unless it is woken."""
    monkeypatch.setattr("middleware.transport.publishing._IDLE_SECONDS", 60.0)
    monkeypatch.setattr("middleware.transport.events._LONGEST_SECONDS", 60.0)


def test_a_sender_drives_a_connection_that_nobody_uses(make_broker: MakeBroker) -> None:
    """Once the connection stands, the sending thread writes its job and reads the confirm by itself."""
    broker = make_broker()
    broker.enqueue(message())
    wait_for_turn(broker)
    assert drive(broker) == (True, [threading.current_thread().name])


def test_a_job_never_drives(make_broker: MakeBroker, start: StartWorker) -> None:
    """What an actor sends is written by the publisher's thread: no time limit can interrupt that one."""
    broker = make_broker()
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def send() -> None:
        journal.note(drive(broker))

    start(broker)
    send.send()
    journal.wait_for(1)
    assert journal.entries == [(False, ["jobs-publisher"])]


def test_a_sender_takes_others_jobs_along(rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker) -> None:
    """While one sender waits for its confirm, what others send is written on the same connection, by it."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    proxy.holds_answers.set()
    threads = [threading.Thread(target=broker.enqueue, args=(message(str(number)),)) for number in range(8)]
    for thread in threads:
        thread.start()
    wait_until(lambda: rabbit.ready(QUEUE) == 9, what="all to be stored before any is confirmed")
    proxy.holds_answers.clear()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert proxy.accepted == 1


def test_a_sender_that_has_its_confirm_leaves_the_rest_to_the_publishers_thread(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """What is still unanswered when the driving sender is done is answered all the same."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))
    ended: list[Result | None] = []
    for _ in range(50):
        ticket = Ticket(
            Publication(QUEUE, READY, message().encode(), "handed in"), lambda each: ended.append(each.result)
        )
        broker.publisher.submit([ticket])
        broker.enqueue(message("driven"))
    wait_until(lambda: len(ended) == 50, what="what was handed in to end")
    assert set(ended) == {Result.CONFIRMED}
    assert rabbit.ready(QUEUE) == 101


def test_a_sender_writes_while_the_publishers_thread_waits(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """Nobody is woken to write its job; the thread that waits for the broker's answers reads this one too."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    proxy.holds_answers.set()
    kept_waiting = Ticket(Publication(QUEUE, READY, message().encode(), "handed in"), lambda _ticket: None)
    broker.publisher.submit([kept_waiting])
    wait_until(lambda: rabbit.ready(QUEUE) == 2, what="the thread to write and wait")
    wait_until(lambda: not broker.publisher._is_driven, what="the thread to lend the turn")
    countdown = Threads()
    ticket = Ticket(Publication(QUEUE, READY, message().encode(), "written"), countdown)
    assert broker.publisher.drive([ticket], countdown, 10.0)
    assert not broker.publisher._publishing._lanes.have_waiting()  # and so it was written by this thread
    wait_until(lambda: rabbit.ready(QUEUE) == 3, what="the job to be stored")
    proxy.holds_answers.clear()
    assert countdown.wait(10.0)
    assert countdown.names == ["jobs-publisher"]


def test_what_the_network_does_not_take_from_a_sender_is_written_by_the_thread(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker, patient: None
) -> None:
    """Megabytes written while the thread waits leave in order when the network moves again."""
    broker = make_broker(url=proxy.url, publish_timeout=timedelta(seconds=60))
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    proxy.holds_answers.set()
    publication = Publication(QUEUE, READY, message().encode(), "handed in")
    broker.publisher.submit([Ticket(publication, lambda _ticket: None)])
    wait_until(lambda: rabbit.ready(QUEUE) == 2, what="the thread to write and wait")
    proxy.holds_requests.set()
    batches = [[message(f"{number} {'x' * 10_000}") for _ in range(150)] for number in range(8)]
    threads = [threading.Thread(target=broker.enqueue_many, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    wire = broker.publisher._publishing.wire
    assert wire is not None
    wait_until(lambda: wire._connection.has_unsent, what="the network to take no more")
    proxy.holds_requests.clear()
    wait_until(lambda: rabbit.ready(QUEUE) == 1202, what="all to be stored")
    proxy.holds_answers.clear()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert proxy.accepted == 1


def test_a_connection_that_a_writing_sender_gives_up_is_replaced_at_once(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was in flight is unknown, what follows is written on a new one: the waiting thread is woken."""
    broker = make_broker(url=proxy.url, publish_timeout=timedelta(seconds=60))
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    proxy.holds_answers.set()
    publisher, ended = broker.publisher, threading.Event()
    in_flight = Ticket(
        Publication(QUEUE, READY, message().encode(), "in flight"), lambda _ticket: ended.set()
    )
    publisher.submit([in_flight])
    wait_until(lambda: rabbit.ready(QUEUE) == 2, what="the thread to write and wait")
    wait_until(lambda: not publisher._is_driven, what="the thread to lend the turn")
    write = publisher._publishing.write

    def interrupted() -> bool:
        write()
        raise KeyboardInterrupt

    monkeypatch.setattr(publisher._publishing, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        broker.enqueue(message("interrupted"))
    assert ended.wait(10)
    assert in_flight.result is Result.UNKNOWN
    wait_until(lambda: not publisher._publishing._lost, what="the thread to close it", seconds=10)
    proxy.holds_answers.clear()
    last = message("last")
    broker.enqueue(last)
    assert rabbit.letters(QUEUE)[-1].body == last.encode()
    assert proxy.accepted == 2


def test_an_idle_connection_keeps_its_heartbeat(proxy: Proxy, make_broker: MakeBroker) -> None:
    """Between sends the publisher's thread answers the broker, whose patience is two seconds here."""
    broker = make_broker(url=f"{proxy.url}?heartbeat=1")
    broker.enqueue(message())
    stays(lambda: broker.publisher._publishing.wire is not None, what="the connection to stand", seconds=4)
    broker.enqueue(message())
    assert proxy.accepted == 1


def test_a_first_send_to_another_queue_ends_in_time(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """Declaring a queue at a broker that does not answer is left to the publisher's thread."""
    broker = make_broker(
        url=proxy.url, publish_timeout=timedelta(seconds=1), queues=[Queue(name=QUEUE), Queue(name="other")]
    )
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    proxy.holds_answers.set()
    began = time.monotonic()
    with pytest.raises(NotEnqueued, match="within 1 s"):
        broker.enqueue(message("second").copy(queue_name="other"))
    assert time.monotonic() - began < 5  # two channels and a declaration may take ten seconds each
    proxy.holds_answers.clear()


def test_a_driving_sender_holds_up_no_other_queue(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """A sender that waits for a late confirm lets the thread declare what another sender's queue needs."""
    broker = make_broker(url=proxy.url, queues=[Queue(name=QUEUE), Queue(name="other")])
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    proxy.holds_answers.set()
    driving = threading.Thread(target=broker.enqueue, args=(message("late"),))
    driving.start()
    wait_until(lambda: rabbit.ready(QUEUE) == 2, what="the sender's job to be stored, and unconfirmed")
    other = threading.Thread(target=broker.enqueue, args=(message("other").copy(queue_name="other"),))
    other.start()
    wait_until(lambda: not broker.publisher._senders, what="the sender to leave the turn to the thread")
    assert driving.is_alive()
    proxy.holds_answers.clear()
    for thread in (driving, other):
        thread.join(20)
        assert not thread.is_alive()
    assert rabbit.ready("other") == 1


def test_closing_ends_a_send_under_way(rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker) -> None:
    """A sender that drives while the broker is closed learns that its job may be stored, at once."""
    broker = make_broker(url=proxy.url, publish_timeout=timedelta(seconds=60))
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    proxy.holds_answers.set()
    told: list[str] = []

    def send() -> None:
        try:
            broker.enqueue(message("second"))
        except EnqueueUnknown as error:
            told.append(str(error))

    thread = threading.Thread(target=send)
    thread.start()
    wait_until(lambda: rabbit.ready(QUEUE) == 2, what="the sender's job to be stored, and unconfirmed")
    broker.close()
    thread.join(10)
    assert not thread.is_alive()
    assert len(told) == 1
    proxy.holds_answers.clear()


def test_senders_do_not_wait_for_the_one_whose_confirm_is_late(proxy: Proxy, make_broker: MakeBroker) -> None:
    """A send that gives up while it drives lets the others go on; each ends within its own timeout."""
    broker = make_broker(url=proxy.url, publish_timeout=timedelta(seconds=1))
    broker.enqueue(message("first"))
    wait_for_turn(broker)
    proxy.holds_answers.set()
    unknown: list[str] = []

    def send() -> None:
        with suppress(NotEnqueued):
            try:
                broker.enqueue(message())
            except EnqueueUnknown as error:
                unknown.append(str(error))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert len(unknown) == 4
    proxy.holds_answers.clear()
    broker.enqueue(message("last"))
