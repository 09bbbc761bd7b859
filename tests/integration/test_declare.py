"""Is the topology on the broker what the kit means, whoever declares it and how often?"""

from __future__ import annotations

import threading
from datetime import timedelta

from middleware import Queue
from middleware.transport.addresses import parse_urls
from middleware.transport.declare import declare
from middleware.transport.ladder import levels_for
from middleware.transport.topology import Topology, topology_of
from middleware.transport.wire import Wire
from tests.brokers import QUEUE, SHORT_LADDER
from tests.fixtures_broker import MakeBroker
from tests.rabbit import Rabbit
from tests.strangers import message


def declare_once(rabbit: Rabbit, topology: Topology) -> None:
    """Declare over a connection of its own."""
    wire = Wire(parse_urls(rabbit.url), "the test declares")
    try:
        declare(wire, topology)
    finally:
        wire.close()


def test_declaring_again_changes_nothing(rabbit: Rabbit) -> None:
    """The topology can be declared again and again, also over a part of itself."""
    topology = topology_of(Queue(name=QUEUE), levels_for(SHORT_LADDER))
    declare_once(rabbit, topology)
    before = rabbit.queue_names()
    declare_once(rabbit, topology)
    assert rabbit.queue_names() == before == {queue.name for queue in topology.queues}
    rabbit.delete_queue(f"{QUEUE}.delay.02")
    declare_once(rabbit, topology)
    assert rabbit.queue_names() == before


def test_eight_processes_may_declare_at_once(rabbit: Rabbit) -> None:
    """Eight connections that declare the same queues at the same moment all succeed, three times over."""
    failures: list[BaseException] = []

    def declare_together(barrier: threading.Barrier, topology: Topology) -> None:
        wire = Wire(parse_urls(rabbit.url), "the test declares")
        try:
            barrier.wait()
            declare(wire, topology)
        except BaseException as error:
            failures.append(error)
        finally:
            wire.close()

    for name in ("first", "second", "third"):
        barrier = threading.Barrier(8)
        topology = topology_of(Queue(name=name), levels_for(SHORT_LADDER))
        threads = [
            threading.Thread(target=declare_together, args=(barrier, topology))
            for _ in range(barrier.parties)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_every_queue_is_a_durable_quorum_queue(rabbit: Rabbit) -> None:
    """The broker holds each queue as declared: durable, of type quorum, with exactly the kit's arguments."""
    topology = topology_of(Queue(name=QUEUE), levels_for(SHORT_LADDER))
    declare_once(rabbit, topology)
    for queue in topology.queues:
        found = rabbit.queue(queue.name)
        assert (found["type"], found["durable"]) == ("quorum", True)
        assert found["arguments"] == queue.arguments


def test_the_longest_delay_has_a_level_to_wait_in(rabbit: Rabbit, make_broker: MakeBroker) -> None:
    """A delay of 30 days waits at the top of a ladder of 26 levels."""
    month = timedelta(days=30)
    broker = make_broker(max_delay=month)
    broker.enqueue(message(), delay=month // timedelta(milliseconds=1))
    assert rabbit.ready(f"{QUEUE}.delay.25") == 1
    assert len([name for name in rabbit.queue_names() if ".delay." in name]) == 26
