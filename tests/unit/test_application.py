from __future__ import annotations

import math
from datetime import timedelta

import dramatiq
import pytest
from dramatiq.middleware import Middleware

import jobs
from jobs import queues
from jobs.broker import build_broker, build_middleware
from jobs.credit import reference
from jobs.queues import QUEUES
from jobs.settings import Settings
from middleware import InlineBroker, Queue, QuorumBroker


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
@pytest.mark.parametrize("threads", [1, 8])
def test_shipped_queues_fit_the_brokers_patience(queue: Queue, threads: int) -> None:
    """The last prefetched job ends before RabbitMQ's consumer timeout, also in a worker with one thread."""
    held = math.ceil(queue.prefetch / threads) * queue.time_limit + Settings().shutdown_grace
    assert held <= timedelta(minutes=30)


@pytest.mark.parametrize(("threads", "said"), [(1, "28:25"), (8, "7:55")])
def test_what_the_queues_take_together_is_what_their_file_says(threads: int, said: str) -> None:
    """The sums in the docstring are those of the lines below it."""
    held = sum((math.ceil(each.prefetch / threads) * each.time_limit for each in QUEUES), timedelta(0))
    minutes, seconds = divmod((held + Settings().shutdown_grace).seconds, 60)
    assert f"{minutes}:{seconds:02}" == said
    assert said in (queues.__doc__ or "")


def test_importing_sets_the_broker() -> None:
    """Who imports `jobs` finds its broker as Dramatiq's own, with the application's actors."""
    broker = dramatiq.get_broker()
    assert jobs.charge_credit.broker is broker
    assert {actor.queue_name for actor in broker.actors.values()} <= {queue.name for queue in QUEUES}


@pytest.mark.parametrize(("url", "kind"), [("inline://", InlineBroker), ("amqp://host", QuorumBroker)])
def test_the_url_decides_about_the_broker(url: str, kind: type) -> None:
    """The same queues and the same middleware are built around either broker, without a connection."""
    broker = build_broker(Settings(broker_url=url), jobs.store)
    assert isinstance(broker, kind)
    assert list(broker.specs) == ["critical", "llm", "indexing"]
    broker.close()


def test_each_middleware_stands_once() -> None:
    """The list holds one of each."""
    kinds = [type(middleware) for middleware in build_middleware(Settings(), jobs.store)]
    assert len(set(kinds)) == len(kinds)
    assert all(issubclass(kind, Middleware) for kind in kinds)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (("t1", "m1"), "t1:m1"),
        (("a:b", "c"), "a%3Ab:c"),
        (("a", "b:c"), "a:b%3Ac"),
        (("a%3Ab", "c"), "a%253Ab:c"),
    ],
)
def test_references_differ_where_usages_differ(usage: tuple[str, str], expected: str) -> None:
    """No two usages share a reference, whatever their ids contain."""
    assert reference(*usage) == expected
