"""Is what the broker says understood, in whatever pieces it comes?"""

from __future__ import annotations

import pytest

from middleware import NotEnqueued
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker
from tests.proxy import Proxy
from tests.rabbit import Rabbit
from tests.strangers import message


@pytest.mark.parametrize("size", [1, 2, 7, 20, 21, 22, 23])
def test_confirms_that_come_in_pieces_are_read(
    rabbit: Rabbit, proxy: Proxy, make_broker: MakeBroker, size: int
) -> None:
    """However the network cuts the frames, every job is confirmed and the connection stands."""
    broker = make_broker(url=proxy.url)
    proxy.largest_answer = size
    for number in range(20):
        broker.enqueue(message(str(number)))
    broker.enqueue_many([message(str(number)) for number in range(200)])
    assert rabbit.ready(QUEUE) == 220
    assert proxy.accepted == 1


def test_confirms_and_refusals_that_come_mixed_are_told_apart(
    rabbit: Rabbit, make_broker: MakeBroker
) -> None:
    """A queue that fills up in the middle of a batch: each job is told what became of it."""
    broker = make_broker()
    broker.enqueue(message("opens the connection"))
    rabbit.set_policy(f"^{QUEUE}$", max_length=10)
    rabbit.wait_for_policy(QUEUE, max_length=10)
    jobs = [message(str(number)) for number in range(2000)]
    with pytest.raises(NotEnqueued) as caught:
        broker.enqueue_many(jobs)
    refused = {each.message_id for each in caught.value.refused}
    stored = {str(letter.properties.message_id) for letter in rabbit.letters(QUEUE)[1:]}
    assert stored
    assert {each.message_id for each in jobs} - refused == stored
