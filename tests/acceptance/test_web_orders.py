"""Do the example applications commit their jobs with their rows, whatever the broker does?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
from sqlalchemy import Engine, create_engine, text

from ..proxy import Proxy
from ..waiting import stays, wait_until
from .deployment import Deployment
from .workers import ROOT

_ANSWER_SECONDS = 30.0
APPLICATIONS = {
    "fastapi": ["uvicorn", "tests.examples.web_fastapi_orders:app", "--port", "0"],
    "flask": ["flask", "--app", "tests.examples.web_flask_orders", "run", "--port", "0"],
}


@pytest.fixture(params=APPLICATIONS)
def name(request: pytest.FixtureRequest) -> str:
    """Which of the example applications."""
    found: str = request.param
    return found


@pytest.fixture
def url(deployment: Deployment, proxy: Proxy, name: str) -> Iterator[str]:
    """One of the applications in a process of its own; it reaches the broker through the proxy."""
    environment = deployment.environment(JOBS_BROKER_URL=proxy.url, PYTHONUNBUFFERED="1")
    log = deployment.folder / "web.log"
    with log.open("ab") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", *APPLICATIONS[name]],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        yield wait_until(lambda: _address(log.read_text()), what="the web server's address", seconds=40)
    finally:
        server.terminate()
        server.wait(timeout=30)
        sys.stdout.write(f"--- web.log\n{log.read_text()[-8000:]}\n")


def _address(log: str) -> str:
    _, found, rest = log.rpartition("unning on ")
    return rest.split()[0] if found and "\n" in rest else ""


@pytest.fixture
def engine(deployment: Deployment) -> Iterator[Engine]:
    """The database, with an account that pays."""
    engine = create_engine(deployment.database_url)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO accounts (id, balance) VALUES ('customer', 1000)"))
    yield engine
    engine.dispose()


def references(engine: Engine) -> list[str]:
    """Return what was charged."""
    with engine.connect() as connection:
        return list(connection.execute(text("SELECT reference FROM credit_entries ORDER BY 1")).scalars())


def waiting(engine: Engine) -> int:
    """Return how many rows wait in the outbox."""
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM job_outbox")).scalar_one())


def post(url: str, path: str) -> httpx.Response:
    """Send a request."""
    return httpx.post(f"{url}/orders/{path}", timeout=_ANSWER_SECONDS)


def test_an_order_and_its_job_are_committed_together(
    deployment: Deployment, engine: Engine, url: str, name: str
) -> None:
    """An order is charged; one that is refused, or there already, leaves neither a row nor a job."""
    deployment.start()
    assert len(post(url, "1").json()["job"]) == 36
    assert post(url, "2/refused").status_code == httpx.codes.CONFLICT
    assert post(url, "1").json() == {"job": "none: there is such an order"}
    expected = ["order:1"]
    if name == "flask":
        assert post(url, "3/joined").status_code == httpx.codes.CREATED
        expected.append("order:3")
    wait_until(lambda: references(engine) == expected, what="the charges")
    wait_until(lambda: not waiting(engine) and not deployment.open(), what="everything to end")
    assert references(engine) == expected
    assert deployment.dead_letters() == []


@pytest.mark.parametrize("state", ["away", "frozen"])
def test_a_broker_that_does_not_answer_delays_no_request(
    deployment: Deployment, engine: Engine, url: str, proxy: Proxy, state: str
) -> None:
    """While the broker is away, or frozen, orders are answered; once it is back they are charged."""
    if state == "away":
        proxy.refuses.set()
        proxy.drop()
    else:
        proxy.holds_answers.set()
    for number in range(20):
        assert post(url, str(number)).status_code == httpx.codes.CREATED
    # Each was answered although nothing of it had reached the broker, nor can have.
    assert waiting(engine) == 20
    deployment.start()
    stays(lambda: references(engine) == [], what="no charge", seconds=1)
    proxy.refuses.clear()
    proxy.holds_answers.clear()
    wait_until(lambda: len(references(engine)) == 20, what="all charges", seconds=40)
    wait_until(lambda: not waiting(engine), what="the outbox to be empty")
    assert len(references(engine)) == 20
