"""Brokers for tests: a virtual host of their own on a real RabbitMQ, workers that end with the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest
from dramatiq import Worker

from middleware import QuorumBroker
from middleware.transport.broker import JobBroker

from .brokers import build_quorum_broker, start_worker, stop_worker
from .control import Control
from .proxy import Proxy
from .rabbit import Rabbit
from .rigs import Rig, build_rig

MakeBroker: TypeAlias = Callable[..., QuorumBroker]
MakeRig: TypeAlias = Callable[..., Rig]
StartWorker: TypeAlias = Callable[..., Worker]


def service_url(name: str) -> str:
    """Return the address of a test service, or fail with the way out."""
    url = os.environ.get(name)
    if not url:
        pytest.fail(f"expected {name} to be set, got: nothing; run `make test`, which starts what tests need")
    return url


@pytest.fixture(scope="session")
def _counts_often() -> None:
    """Where the services are this run's own, tests need not wait for counts."""
    if os.environ.get("JOBS_TEST_OWNED") == "1":
        Control(service_url("JOBS_TEST_CTL")).count_often()


@pytest.fixture
def rabbit(_counts_often: None) -> Iterator[Rabbit]:
    """A virtual host that lives as long as the test."""
    rabbit = Rabbit(service_url("JOBS_TEST_BROKER_URL"), service_url("JOBS_TEST_MANAGEMENT_URL"))
    rabbit.create()
    yield rabbit
    rabbit.delete()


@pytest.fixture
def make_broker(rabbit: Rabbit) -> Iterator[MakeBroker]:
    """Build brokers on the test's virtual host; they are closed at its end."""
    with ExitStack() as stack:

        def make(**options: Any) -> QuorumBroker:
            broker = build_quorum_broker(options.pop("url", rabbit.url), **options)
            stack.callback(broker.close)
            return broker

        yield make


@pytest.fixture
def proxy(rabbit: Rabbit) -> Iterator[Proxy]:
    """A proxy in front of the test's broker."""
    proxy = Proxy(rabbit.url)
    yield proxy
    proxy.close()


@pytest.fixture
def start() -> Iterator[StartWorker]:
    """Start workers in this process; they are stopped at the test's end."""
    with ExitStack() as stack:

        def begin(broker: JobBroker, **options: Any) -> Worker:
            worker = start_worker(broker, **options)
            stack.callback(stop_worker, worker)
            return worker

        yield begin


@pytest.fixture(params=["quorum", "inline"])
def make_rig(request: pytest.FixtureRequest) -> Iterator[MakeRig]:
    """Build brokers of one kind; a test that uses this runs once with RabbitMQ and once in memory."""
    rabbit = request.getfixturevalue("rabbit") if request.param == "quorum" else None
    with ExitStack() as stack:

        def make(**options: Any) -> Rig:
            rig = build_rig(rabbit, **options)
            stack.callback(rig.close)
            return rig

        yield make


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """A broker with a queue named `jobs`."""
    return make_rig()


@pytest.fixture
def control() -> Control:
    """Commands for services that `make` started for this run."""
    return Control(service_url("JOBS_TEST_CTL"))
