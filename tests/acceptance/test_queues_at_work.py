"""Do the shipped actors run on real services, each on its queue?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, text

from ..mail_server import MailServer, serve_mail
from ..model_server import ModelServer, said, serve_model
from ..waiting import wait_until
from .commands import succeed
from .deployment import Deployment


@pytest.fixture
def mail() -> Iterator[MailServer]:
    """A mail server."""
    with serve_mail() as server:
        yield server


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model's API."""
    with serve_model() as server:
        yield server


@pytest.fixture
def engine(deployment: Deployment) -> Iterator[Engine]:
    """A look into the deployment's database."""
    engine = create_engine(deployment.database_url)
    yield engine
    engine.dispose()


def test_one_worker_runs_all_three_queues(
    deployment: Deployment, engine: Engine, mail: MailServer, model: ModelServer
) -> None:
    """What `jobsctl send` sends is charged, emailed, summarised and indexed by `dramatiq jobs`."""
    model.answers = [said("The delivery is late.")]
    settings = {"JOBS_SMTP_URL": f"smtp://{mail.address}", "JOBS_LLM_URL": model.url}
    succeed("seed", settings=deployment.environment())
    for words in (
        "charge_credit t1 m1",
        "send_email user-2 receipt order-user-2",
        "summarize_chat chat-3 4",
        "index_resource resource-4 1",
    ):
        succeed("send", *words.split(), settings=deployment.environment())
    worker = deployment.start(settings=settings, modules=["jobs"], queues=[]).wait_ready()
    for query, rows in (
        ("SELECT reference, amount FROM credit_entries", [("t1:m1", 2)]),
        ("SELECT chat_id, up_to, text FROM chat_summaries", [("chat-3", 4, "The delivery is late.")]),
        (
            "SELECT resource_id, version FROM resource_index WHERE terms @@ to_tsquery('simple', 'guide')",
            [("resource-4", 1)],
        ),
    ):
        wait_until(lambda: read(engine, query), what=query)  # noqa: B023  # asked before the loop goes on
        assert read(engine, query) == rows
    wait_until(lambda: mail.accepted, what="the email")
    assert mail.recipients == ["user-2@example.com"]
    for queue in ("critical", "llm", "indexing"):
        wait_until(lambda: not deployment.waiting(queue), what=f"{queue} to be empty")  # noqa: B023  # as above
    worker.stop()
    assert deployment.open() == 0


def read(engine: Engine, query: str) -> list[tuple[object, ...]]:
    """Return what a query finds."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]
