"""When does a worker start, and when does it refuse to?"""

from __future__ import annotations

from pathlib import Path

import pytest

from ..waiting import wait_until
from .books import RecordUsages, charge
from .deployment import Deployment, probes
from .foreign import CRITICAL, declare_critical
from .workers import Worker

MY_ACTORS = """
import os
from pathlib import Path

import dramatiq

import jobs


@dramatiq.actor(queue_name="critical")
def greet(name):
    Path(os.environ["PROBE_FOLDER"], "greeting").write_text(f"hello {name}")
"""


@pytest.mark.parametrize(
    ("modules", "queues"),
    [(["my_actors"], []), (["jobs", "my_actors"], ["critical"])],
    ids=["all", "critical"],
)
def test_a_second_module_brings_more_actors(
    deployment: Deployment, record_usages: RecordUsages, modules: list[str], queues: list[str]
) -> None:
    """A module that imports `jobs` and declares an actor runs beside the application's own actors."""
    (deployment.folder / "my_actors.py").write_text(MY_ACTORS)
    path = {"PYTHONPATH": f"{deployment.folder}:{deployment.environment().get('PYTHONPATH', '')}"}
    books = record_usages(1)
    deployment.start(modules=modules, queues=queues, settings=path).wait_ready()
    deployment.send(probes(["world"])[0].copy(actor_name="greet"), charge(0))
    greeting = deployment.folder / "greeting"
    wait_until(greeting.exists, what="the new actor to run")
    wait_until(books.count, what="the application's own actor to run")
    assert greeting.read_text() == "hello world"


def test_four_workers_start_at_once_on_an_empty_broker(deployment: Deployment) -> None:
    """Worker processes that declare the same queues at the same moment all come up and share the jobs."""
    workers = [deployment.start(processes=2, threads=1) for _ in range(2)]
    pids = {pid for worker in workers for pid in worker.wait_ready().pids()}
    assert len(pids) == 4
    deployment.send(*probes([f"p{number}" for number in range(200)], gates=["all"]))
    wait_until(lambda: {event.pid for event in deployment.seen.of("began")} == pids, what="all four to work")
    deployment.gates.open("all")
    wait_until(lambda: len(deployment.seen.of("ended")) == 200, what="all jobs to end")
    assert [worker.exit_code for worker in workers] == [None, None]


@pytest.mark.parametrize(
    "broker", [{"JOBS_BROKER_URL": "inline://"}, {"JOBS_BROKER_URL": ""}], ids=["set", "default"]
)
def test_the_inline_broker_has_no_workers(
    tmp_path: Path, deployment: Deployment, broker: dict[str, str]
) -> None:
    """`dramatiq jobs` with the inline broker exits with 2 and says how to get a broker."""
    settings = broker | {"JOBS_DATABASE_URL": f"sqlite:///{tmp_path}/jobs.sqlite3", "JOBS_MANAGEMENT_URL": ""}
    worker = deployment.start(modules=["jobs"], settings=settings)
    assert worker.wait_ended() == 2
    assert "run `make services`" in worker.text()


def _assert_refused(worker: Worker, *words: str) -> None:
    assert worker.wait_ended(seconds=20) != 0
    text = worker.text()
    refusals = [line for line in text.splitlines() if "CRITICAL" in line and "Refusing to start" in line]
    assert len(refusals) == 1, text
    assert [word for word in words if word not in refusals[0]] == []
    assert "ready for action" not in text


def test_an_unknown_queue_name_is_refused(deployment: Deployment) -> None:
    """A misspelt name in --queues ends the start and is named together with the names there are."""
    worker = deployment.start(queues=["critical", "indexng"])
    _assert_refused(worker, "--queues", "indexng", "critical", "llm", "indexing")


def test_a_queue_that_differs_is_refused(deployment: Deployment) -> None:
    """A queue with other arguments on the broker ends the start and is named, with the way out."""
    declare_critical(deployment, {"x-queue-type": "quorum"})
    worker = deployment.start()
    _assert_refused(worker, "'critical'", "x-d", "got:", "delete")


def test_a_queue_with_another_delivery_limit_is_refused(deployment: Deployment) -> None:
    """Both values of the argument that differs are in the log."""
    declare_critical(deployment, {**CRITICAL, "x-delivery-limit": 7})
    _assert_refused(deployment.start(), "'critical'", "x-delivery-limit", "1000", "7")


def test_an_overriding_policy_is_refused(deployment: Deployment) -> None:
    """A policy that would drop jobs ends the start; queue, key, value and policy are named."""
    deployment.rabbit.set_policy("^critical$", message_ttl=60000)
    _assert_refused(deployment.start(), "'critical'", "message-ttl", "60000", "'test'")


def test_jobs_held_longer_than_the_broker_allows_are_refused(deployment: Deployment) -> None:
    """Prefetch × time limit above the broker's patience ends the start, with the arithmetic."""
    worker = deployment.start(threads=1, settings={"JOBS_BROKER_CONSUMER_TIMEOUT": "10m"})
    _assert_refused(worker, "critical", "48", "0:12:25", "0:10:00", "JOBS_BROKER_CONSUMER_TIMEOUT")
