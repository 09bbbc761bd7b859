"""Does a web application that enqueues from its requests tell each client the truth, always?"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import httpx
import pytest

from ..control import Control
from ..waiting import wait_until
from .books import RecordUsages
from .deployment import Deployment
from .workers import ROOT

_CONCURRENT: Final = 50
_USAGES: Final = 30_000
_PUBLISH_TIMEOUT_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 30.0
"""Far above the publish timeout: a request that hangs fails the test, a slow machine does not."""


@pytest.fixture
def url(deployment: Deployment) -> Iterator[str]:
    """The example application, served by uvicorn in a process of its own."""
    environment = deployment.environment(JOBS_PUBLISH_TIMEOUT=f"{_PUBLISH_TIMEOUT_SECONDS:g}s")
    log = deployment.folder / "web.log"
    argv = ["-m", "uvicorn", "tests.examples.web_fastapi:app", "--port", "0", "--no-access-log"]
    with log.open("ab") as output:
        server = subprocess.Popen(
            [sys.executable, *argv], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        yield wait_until(lambda: _address(log.read_text()), what="the web server's address", seconds=40)
    finally:
        server.terminate()
        server.wait(timeout=30)
        sys.stdout.write(f"--- web.log\n{log.read_text()[-8000:]}\n")
    assert "Application shutdown complete" in log.read_text(), "expected the web server to end orderly"


def _address(log: str) -> str:
    _, found, rest = log.partition("Uvicorn running on ")
    return rest.split()[0] if found else ""


@dataclass
class Clients:
    """Fifty clients that each send one charge after the other until they are told to stop.

    Attributes:
        answers: state of the answer (`stored`, `not stored`, `unknown`) → numbers of the usages.
    """

    url: str
    answers: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    is_done: bool = False

    async def run(self) -> None:
        """Send until `is_done`."""
        limits = httpx.Limits(max_connections=_CONCURRENT)
        async with httpx.AsyncClient(base_url=self.url, timeout=_ANSWER_SECONDS, limits=limits) as client:
            await asyncio.gather(*(self._charge(client, first) for first in range(_CONCURRENT)))

    async def _charge(self, client: httpx.AsyncClient, first: int) -> None:
        for number in range(first, _USAGES, _CONCURRENT):
            if self.is_done:
                return
            answer = await client.post(f"/charges/t/m{number}")
            if answer.status_code == httpx.codes.ACCEPTED:
                self.answers["stored"].append(number)
            else:
                assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text
                self.answers[answer.json()["state"]].append(number)


async def _while_the_broker_restarts(clients: Clients, control: Control) -> None:
    """Run the clients, crash and start the broker in the middle, and watch that the application answers."""
    running = asyncio.create_task(clients.run())
    await _until(lambda: len(clients.answers["stored"]) > 200, running)
    await asyncio.to_thread(control.run, "kill", "rabbitmq")
    async with httpx.AsyncClient(base_url=clients.url, timeout=_PUBLISH_TIMEOUT_SECONDS / 2) as watcher:
        starting = asyncio.create_task(asyncio.to_thread(control.run, "start", "rabbitmq"))
        while not starting.done():
            assert (await watcher.get("/alive")).json() == {"alive": True}
            await asyncio.sleep(0.05)
        await starting
    before = len(clients.answers["stored"])
    await _until(lambda: len(clients.answers["stored"]) > before + 200, running)
    clients.is_done = True
    await running


async def _until(fact: Callable[[], bool], running: asyncio.Task[None]) -> None:
    async with asyncio.timeout(60):
        while not fact():
            if running.done():
                await running
            await asyncio.sleep(0.02)


@pytest.mark.owned_services
def test_each_request_is_refused_clearly_or_its_job_runs_though_the_broker_restarts(
    deployment: Deployment, control: Control, record_usages: RecordUsages, url: str
) -> None:
    """Of fifty concurrent clients' charges the accepted ones run once, and those "not stored" never do."""
    books = record_usages(_USAGES)
    worker = deployment.start().wait_ready()
    clients = Clients(url)
    asyncio.run(_while_the_broker_restarts(clients, control))
    assert clients.answers["not stored"], "expected requests to be refused while there was no broker"
    assert worker.exit_code is None
    wait_until(lambda: not deployment.open(), what="the same worker to finish", seconds=60)
    worker.stop()
    deployment.work_off()
    books.check({*clients.answers["stored"]} | (set(books.charged()) & set(clients.answers["unknown"])))
    assert deployment.waiting() == {}


def test_a_request_enqueues_a_job(deployment: Deployment, record_usages: RecordUsages, url: str) -> None:
    """A request is answered 202 when its job is stored; an unacceptable one gets 422 and stores none."""
    books = record_usages(1)
    accepted = httpx.post(f"{url}/charges/t/m0", timeout=_ANSWER_SECONDS)
    assert accepted.status_code == httpx.codes.ACCEPTED
    assert len(accepted.json()["job"]) == 36
    refused = httpx.post(f"{url}/charges/t/{'m' * 4000}", timeout=_ANSWER_SECONDS)
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY, refused.text
    assert deployment.waiting() == {"critical": 1}
    deployment.work_off()
    books.check({0})
