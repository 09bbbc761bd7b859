"""Does all go on over `amqps://` as it does in the clear?"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import dramatiq
import pytest

from middleware import NotEnqueued
from tests.brokers import QUEUE
from tests.encryption import encrypting, make_certificate
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.rabbit import Rabbit
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def url(rabbit: Rabbit, certificate: Path) -> Iterator[str]:
    """The test's virtual host, encrypted."""
    with encrypting(rabbit.url, certificate) as url:
        yield url


def test_jobs_are_sent_and_run(
    monkeypatch: pytest.MonkeyPatch,
    rabbit: Rabbit,
    make_broker: MakeBroker,
    start: StartWorker,
    certificate: Path,
    url: str,
) -> None:
    """Sends of eight threads, many at once and jobs of several TLS records arrive and run once each."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    broker = make_broker(url=url, publish_timeout=timedelta(seconds=30))
    ran: list[str] = []

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note(name: str, padding: str) -> None:
        ran.append(name)

    def send(thread: int) -> None:
        for number in range(20):
            note.send(f"{thread}-{number}", "x" * 60_000)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    broker.enqueue_many([note.message(f"many-{number}", "x" * 1000) for number in range(1000)])
    for thread in threads:
        thread.join()
    note.send_with_options(args=("late", ""), delay=timedelta(milliseconds=50))
    start(broker)
    wait_until(lambda: len(ran) >= 1161, what="all jobs to run")
    assert set(Counter(ran).values()) == {1}
    wait_until(lambda: rabbit.ready(QUEUE) == 0, what="the queue to be empty")


def test_a_broker_that_nobody_vouches_for_gets_nothing(
    rabbit: Rabbit, make_broker: MakeBroker, url: str
) -> None:
    """A certificate that is not trusted ends the connection before the password, and the error says so."""
    broker = make_broker(url=url, publish_timeout=timedelta(seconds=1))

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note() -> None: ...

    with pytest.raises(NotEnqueued, match="CERTIFICATE_VERIFY_FAILED"):
        note.send()
    assert QUEUE not in rabbit.queue_names()
