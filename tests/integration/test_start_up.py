"""When does a worker refuse to start? Whenever it would lose jobs, or be alive and consume nothing."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import dramatiq
import httpx
import pytest

from middleware import Queue, QuorumBroker
from middleware.transport import start_up
from middleware.transport.ladder import levels_for
from middleware.transport.topology import topology_of
from tests.brokers import QUEUE, SHORT_LADDER, start_worker
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.journal import Journal
from tests.rabbit import Rabbit

CONFIGURATION = 78
CONNECTION = 3


@pytest.fixture
def refused(caplog: pytest.LogCaptureFixture) -> Any:
    """Start a worker that must refuse; return its exit code and its one CRITICAL line."""

    def start_refused(broker: QuorumBroker, **options: Any) -> tuple[Any, str]:
        before = set(threading.enumerate())
        with caplog.at_level(logging.CRITICAL), pytest.raises(SystemExit) as exit:
            start_worker(broker, **options)
        lines = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
        assert len(lines) == 1, lines
        left = {thread.name for thread in set(threading.enumerate()) - before if not thread.daemon}
        assert not left, f"expected a refused start to leave no thread, got: {left}"
        return exit.value.code, lines[0]

    return start_refused


def declare_by_hand(rabbit: Rabbit, name: str, **changes: Any) -> None:
    """Declare one of the kit's queues with the kit's arguments, some of them changed; None leaves one out."""
    topology = topology_of(Queue(name=QUEUE), levels_for(SHORT_LADDER))
    arguments = {queue.name: queue.arguments for queue in topology.queues}[name]
    arguments |= {key.replace("_", "-"): value for key, value in changes.items()}
    with rabbit.channel() as channel:
        channel.exchange_declare("jobs.dlx", "direct", durable=True)
        kept = {key: value for key, value in arguments.items() if value is not None}
        channel.queue_declare(name, durable=True, arguments=kept)


@pytest.mark.parametrize(
    ("name", "changes", "argument", "ours", "theirs"),
    [
        (QUEUE, {"x_delivery_limit": 500}, "x-delivery-limit", "1000", "500"),
        (QUEUE, {"x_max_length": 10}, "x-max-length", "none", "10"),
        (QUEUE, {"x_single_active_consumer": True}, "x-single-active-consumer", "none", "true"),
        (f"{QUEUE}.XQ", {"x_message_ttl": 604800000}, "x-message-ttl", "none", "604800000"),
        (f"{QUEUE}.XQ", {"x_delivery_limit": 20}, "x-delivery-limit", "1000000", "20"),
        (f"{QUEUE}.delay.03", {"x_message_ttl": 1}, "x-message-ttl", "400", "1"),
    ],
)
def test_a_queue_with_other_arguments_refuses_the_start(
    rabbit: Rabbit,
    make_broker: MakeBroker,
    refused: Any,
    name: str,
    changes: dict[str, Any],
    argument: str,
    ours: str,
    theirs: str,
) -> None:
    """A queue that exists with another argument refuses the start, naming both values and the way out."""
    declare_by_hand(rabbit, name, **changes)
    code, line = refused(make_broker())
    assert code == CONFIGURATION
    assert f"queue {name!r}: expected {argument} to be {ours}" in line
    assert f"got: {theirs} on the broker" in line
    assert f"rabbitmqctl delete_queue {name}" in line


def test_a_queue_of_another_type_refuses_the_start(
    rabbit: Rabbit, make_broker: MakeBroker, refused: Any
) -> None:
    """A classic queue in a quorum queue's place refuses the start."""
    with rabbit.channel() as channel:
        channel.queue_declare(QUEUE, durable=True)
    code, line = refused(make_broker())
    assert code == CONFIGURATION
    assert f"queue {QUEUE!r}: expected " in line


def test_an_exchange_of_another_type_refuses_the_start(
    rabbit: Rabbit, make_broker: MakeBroker, refused: Any
) -> None:
    """An exchange that exists with another type refuses the start."""
    with rabbit.channel() as channel:
        channel.exchange_declare("jobs.dlx", "fanout", durable=True)
    code, line = refused(make_broker())
    assert code == CONFIGURATION
    assert "exchange 'jobs.dlx': expected type to be direct" in line
    assert "got: fanout" in line


@pytest.mark.parametrize("exists", [False, True], ids=["new queues", "queues that exist"])
@pytest.mark.parametrize(
    ("pattern", "definition", "queue"),
    [
        (f"^{QUEUE}$", {"message_ttl": 60_000}, QUEUE),
        (f"^{QUEUE}$", {"max_length": 1000}, QUEUE),
        (f"^{QUEUE}$", {"max_length_bytes": 1000}, QUEUE),
        (f"^{QUEUE}$", {"delivery_limit": 20}, QUEUE),
        (r"\.XQ$", {"message_ttl": 604_800_000}, f"{QUEUE}.XQ"),
        (r"\.XQ$", {"expires": 604_800_000}, f"{QUEUE}.XQ"),
        (r"\.delay\.", {"max_length": 0}, f"{QUEUE}.delay.00"),
    ],
)
def test_a_policy_that_would_lose_jobs_refuses_the_start(
    rabbit: Rabbit,
    make_broker: MakeBroker,
    refused: Any,
    exists: bool,
    pattern: str,
    definition: dict[str, int],
    queue: str,
) -> None:
    """A policy that drops, expires or refuses jobs refuses the start, and the line names it."""
    broker = make_broker(management_url=rabbit.management_url)
    if exists:
        broker.enqueue(dramatiq.Message(queue_name=QUEUE, actor_name="any", args=(), kwargs={}, options={}))
    rabbit.set_policy(pattern, **definition)
    code, line = refused(broker)
    ((key, value),) = definition.items()
    assert code == CONFIGURATION
    assert f"queue {queue!r}" in line
    assert key.replace("_", "-") in line
    assert str(value) in line
    assert "policy 'test'" in line


def test_a_policy_that_ends_a_delivery_earlier_refuses_the_start(
    rabbit: Rabbit, make_broker: MakeBroker, refused: Any
) -> None:
    """Where a policy can shorten the consumer timeout (RabbitMQ 3.12 and later), it refuses the start."""
    broker = make_broker(management_url=rabbit.management_url, consumer_timeout=timedelta(minutes=30))
    if not rabbit.is_since(3, 12):
        with pytest.raises(httpx.HTTPStatusError, match="400"):
            rabbit.set_policy(f"^{QUEUE}$", consumer_timeout=60_000)
        return
    rabbit.set_policy(f"^{QUEUE}$", consumer_timeout=60_000)
    code, line = refused(broker)
    assert code == CONFIGURATION
    assert "expected consumer-timeout to be at least JOBS_BROKER_CONSUMER_TIMEOUT (30m)" in line
    assert "got: 60000 ms by policy 'test'" in line


def test_a_harmless_policy_does_not_refuse_the_start(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """A policy that changes nothing that the kit promises is fine."""
    rabbit.set_policy(".*", delivery_limit=2_000_000)
    start(make_broker(management_url=rabbit.management_url))


def test_an_unknown_queue_name_refuses_the_start(make_broker: MakeBroker, refused: Any) -> None:
    """A misspelt name in `--queues` refuses the start instead of consuming nothing."""
    code, line = refused(make_broker(), queues={QUEUE, "jbos"})
    assert code == CONFIGURATION
    assert "expected --queues to be among jobs, got: jbos" in line


@pytest.mark.parametrize(("threads", "refuses"), [(2, True), (3, False)])
def test_prefetched_jobs_must_end_before_the_brokers_timeout(
    make_broker: MakeBroker, refused: Any, start: StartWorker, threads: int, refuses: bool
) -> None:
    """A prefetch that the broker's consumer timeout would not wait for refuses the start, with the sum."""
    broker = make_broker(
        queues=[Queue(name=QUEUE, prefetch=5, time_limit=timedelta(minutes=10))],
        grace=timedelta(minutes=1),
        consumer_timeout=timedelta(minutes=30),
    )
    if not refuses:
        start(broker, threads=threads)
        return
    code, line = refused(broker, threads=threads)
    assert code == CONFIGURATION
    assert "queue 'jobs'" in line
    assert "ceil(5 / 2) x 0:10:00 + 0:01:00 = 0:31:00" in line
    assert "JOBS_BROKER_CONSUMER_TIMEOUT (0:30:00)" in line


def test_a_broker_that_is_away_refuses_the_start(
    make_broker: MakeBroker, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that finds no broker for a while ends with the code that Dramatiq has for it."""
    monkeypatch.setattr(start_up, "_START_SECONDS", 1.0)
    code, line = refused(make_broker(url="amqp://guest:guest@127.0.0.1:1/%2F"))
    assert code == CONNECTION
    assert "127.0.0.1:1" in line
    assert "refused" in line


def test_a_missing_permission_refuses_the_start(
    rabbit: Rabbit, make_broker: MakeBroker, refused: Any
) -> None:
    """A user that may not declare gets the broker's own words at once."""
    rabbit.restrict(configure="^$")
    code, line = refused(make_broker())
    assert code == CONFIGURATION
    assert "ACCESS_REFUSED" in line


def test_a_management_api_that_is_away_does_not_refuse_the_start(
    make_broker: MakeBroker, start: StartWorker, caplog: pytest.LogCaptureFixture
) -> None:
    """Jobs go on without the HTTP API; one warning says that policies were not checked."""
    broker = make_broker(management_url="http://guest:guest@127.0.0.1:1")
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note() -> None:
        journal.note("ran")

    with caplog.at_level(logging.WARNING):
        start(broker)
    warnings = [
        record.getMessage() for record in caplog.records if "policies_not_checked" in record.getMessage()
    ]
    assert len(warnings) == 1
    note.send()
    journal.wait_for(1)


def test_queues_of_one_worker_share_its_threads(make_broker: MakeBroker, refused: Any) -> None:
    """Two queues that pass alone are refused together when the sum of their times is too long."""
    broker = make_broker(
        queues=[Queue(name=name, prefetch=2, time_limit=timedelta(minutes=10)) for name in (QUEUE, "other")],
        grace=timedelta(minutes=1),
        consumer_timeout=timedelta(minutes=30),
    )
    code, line = refused(broker, threads=1)
    assert code == CONFIGURATION
    assert "ceil(2 / 1) x 0:10:00 + ceil(2 / 1) x 0:10:00 + 0:01:00 = 0:41:00" in line


def test_a_wrong_password_refuses_the_start_at_once(
    rabbit: Rabbit, make_broker: MakeBroker, refused: Any
) -> None:
    """Waiting does not cure a wrong password: the start ends with the configuration's code."""
    code, line = refused(
        make_broker(url=rabbit.url.replace(urlsplit(rabbit.url).netloc.partition("@")[0], "nobody:wrong"))
    )
    assert code == CONFIGURATION
    assert "ACCESS_REFUSED" in line


def test_only_the_named_queues_are_consumed(make_broker: MakeBroker, start: StartWorker) -> None:
    """A worker started for one queue leaves the others alone."""
    broker = make_broker(queues=[Queue(name=QUEUE), Queue(name="other")])
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name="other")
    def elsewhere() -> None:
        journal.note("elsewhere")

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def here() -> None:
        journal.note("here")

    worker = start(broker, queues={QUEUE})
    elsewhere.send()
    here.send()
    journal.wait_for(1)
    assert list(worker.consumers) == [QUEUE]
    assert broker.queue_counts("other").waiting == 1
    assert journal.entries == ["here"]
