"""What does a send say when its connection cannot be had, breaks or freezes?"""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

import pytest

from middleware import EnqueueUnknown, NotEnqueued
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.strangers import message
from tests.waiting import wait_until

SECOND = timedelta(seconds=1)


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"netloc": "guest:guest@127.0.0.1:{closed}"}, "refused"),
        ({"netloc": "guest:guest@no-such-host.invalid"}, "no-such-host.invalid"),
        ({"path": "/no-such-vhost"}, "vhost no-such-vhost not found"),
        ({"netloc": "nobody:wrong@{address}"}, "ACCESS_REFUSED"),
    ],
    ids=["nothing listens", "DNS", "unknown vhost", "wrong password"],
)
def test_a_broker_that_cannot_be_reached_stores_nothing(
    rabbit: Rabbit, make_broker: MakeBroker, changes: dict[str, str], reason: str
) -> None:
    """Without a connection, `send()` raises NotEnqueued within its deadline and says why."""
    parts = urlsplit(rabbit.url)
    address = parts.netloc.rpartition("@")[2]
    filled = {key: value.format(closed=_closed_port(), address=address) for key, value in changes.items()}
    broker = make_broker(url=urlunsplit(parts._replace(**filled)), publish_timeout=SECOND)
    began = time.monotonic()
    with pytest.raises(NotEnqueued, match="certainly not stored") as refused:
        broker.enqueue(message())
    assert time.monotonic() - began < 4
    assert reason in str(refused.value)
    assert "wrong@" not in str(refused.value)
    assert len(refused.value.refused) == 1


def test_many_threads_share_one_connection(rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker) -> None:
    """Eight threads send over one connection, and every message arrives once."""
    broker = make_broker(url=proxy.url)
    sent: list[str] = []

    def send(thread: int) -> None:
        for number in range(50):
            sent.append(broker.enqueue(message(f"{thread} {number}")).message_id)

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(str(letter.properties.message_id) for letter in rabbit.letters(QUEUE)) == sorted(sent)
    assert proxy.accepted == 1


def test_a_send_waits_for_a_broker_that_comes_back(proxy: Proxy, make_broker: MakeBroker) -> None:
    """A connection that is lost while nothing is under way costs a sender nothing but a moment."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message())
    proxy.drop()
    broker.enqueue(message())


def test_connections_closed_by_an_operator_are_opened_again(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """After an operator closed the publisher's connection, the next send opens another."""
    broker = make_broker()
    broker.enqueue(message())
    rabbit.close_connections("publisher")
    broker.enqueue(message())
    assert rabbit.ready(QUEUE) == 2


def test_a_connection_that_dies_before_the_confirm_leaves_it_unknown(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """If the connection goes between publish and confirm, `send()` raises EnqueueUnknown at once."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message())
    proxy.holds_answers.set()
    dropper = threading.Thread(target=_drop_when_stored, args=(rabbit, proxy, 2))
    dropper.start()
    began = time.monotonic()
    with pytest.raises(EnqueueUnknown, match="only with an idempotency key") as unknown:
        broker.enqueue(message())
    dropper.join()
    assert time.monotonic() - began < 4
    assert len(unknown.value.unknown) == 1
    proxy.holds_answers.clear()
    broker.enqueue(message("afterwards"))
    assert rabbit.ready(QUEUE) == 3


def _drop_when_stored(rabbit: Rabbit, proxy: Proxy, count: int) -> None:
    wait_until(lambda: rabbit.ready(QUEUE) >= count, what=f"{count} messages in the queue")
    proxy.drop()


def test_a_frozen_connection_ends_a_send_at_its_deadline(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """A send whose confirm does not come raises EnqueueUnknown at its deadline, and was published once."""
    broker = make_broker(url=proxy.url, publish_timeout=SECOND)
    broker.enqueue(message())
    proxy.holds_requests.set()
    began = time.monotonic()
    with pytest.raises(EnqueueUnknown, match="no confirm within 1 s"):
        broker.enqueue(message())
    assert 1 <= time.monotonic() - began < 4
    proxy.holds_requests.clear()
    broker.enqueue(message())
    assert rabbit.ready(QUEUE) == 3


def test_one_send_publishes_at_most_once(rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker) -> None:
    """While connections break, what was confirmed is stored once, what was refused is not stored."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message())
    confirmed: list[str] = []
    refused: list[str] = []
    unknown: list[str] = []
    until = time.monotonic() + 2

    def send() -> None:
        while time.monotonic() < until:
            try:
                confirmed.append(broker.enqueue(message()).message_id)
            except NotEnqueued as error:
                refused.extend(each.message_id for each in error.refused)
            except EnqueueUnknown as error:
                unknown.extend(each.message_id for each in error.unknown)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    while time.monotonic() < until:
        threads[0].join(0.2)
        proxy.drop()
    for thread in threads:
        thread.join()
    stored = [str(letter.properties.message_id) for letter in rabbit.letters(QUEUE)]
    assert len(stored) == len(set(stored))
    assert set(confirmed) <= set(stored)
    assert not set(refused) & set(stored)
    assert len(confirmed) > 20
    assert unknown


def test_a_break_in_the_middle_of_many_tells_each_ones_fate(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker
) -> None:
    """If the connection breaks during `enqueue_many`, the error lists what is not and what may be stored."""
    broker = make_broker(url=proxy.url)
    broker.enqueue(message("declares"))
    many = [message(str(number)) for number in range(5000)]
    dropper = threading.Thread(target=_drop_when_stored, args=(rabbit, proxy, 100))
    dropper.start()
    failed: list[EnqueueUnknown] = []
    try:
        broker.enqueue_many(many)
    except EnqueueUnknown as error:
        failed.append(error)
    dropper.join()
    assert failed, "expected the connection to break before all was confirmed"
    unknown = {each.message_id for each in failed[0].unknown}
    refused = {each.message_id for each in failed[0].refused}
    stored = [str(letter.properties.message_id) for letter in rabbit.letters(QUEUE)]
    assert len(stored) == len(set(stored))
    assert {each.message_id for each in many} - unknown - refused <= set(stored)
    assert not refused & set(stored)
    assert 0 < len(unknown) < 5000


def test_an_alarm_on_a_connection_that_was_given_up_blocks_nothing(make_broker: MakeBroker) -> None:
    """While the old connection is being closed the broker may still say things on it."""
    broker = make_broker()
    broker.enqueue(message())
    publishing = broker.publisher._publishing
    with broker.publisher._turn:
        publishing.lose("a test")
        publishing._on_blocked("said too late")
    assert not publishing.problem.startswith("the broker blocks")
    broker.enqueue(message())
