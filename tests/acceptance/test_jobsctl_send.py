"""Does `jobsctl send` give an actor its job, and say what became of it?"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ..model_server import Answer, said, serve_model
from .commands import embedded, fail, jobsctl, succeed
from .deployment import Deployment
from .test_start import MY_ACTORS

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with one account of 3 credits, and usages m1 for 2 and m2 for 3."""
    folder = tmp_path_factory.mktemp("sample")
    succeed("migrate", settings=embedded(folder))
    succeed("seed", "--accounts", "1", "--usages", "2", "--balance", "3", settings=embedded(folder))
    return folder / "jobs.sqlite3"


@pytest.fixture
def seeded(sample: Path, tmp_path: Path) -> dict[str, str]:
    """Settings of an embedded application with a copy of the sample."""
    shutil.copy(sample, tmp_path)
    return embedded(tmp_path) | {"JOBS_MIN_BACKOFF": "50ms", "JOBS_MAX_RETRIES": "2"}


def test_inline_send_runs_the_job(seeded: dict[str, str], tmp_path: Path) -> None:
    """With the inline broker the command prints the message id, runs the job and says how it ended."""
    first, last = succeed("send", "charge_credit", "t1", "m1", settings=seeded).splitlines()
    assert re.fullmatch(UUID, first)
    assert last == f"{first} completed on attempt 1"
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite3")) as database:
        entries = database.execute("SELECT reference, account_id, amount FROM credit_entries").fetchall()
        balances = database.execute("SELECT id, balance FROM accounts").fetchall()
    assert entries == [("t1:m1", "account-1", 2)]
    assert balances == [("account-1", 1)]


def test_inline_send_again_is_a_duplicate(seeded: dict[str, str]) -> None:
    """The same charge a second time, later or at the same time, runs nothing and is no failure."""
    output = succeed("send", "charge_credit", "t1", "m1", "--count", "3", settings=seeded)
    assert output.count("completed on attempt 1") == 1
    assert output.count("duplicate: its idempotency key was spent before") == 2
    assert "duplicate" in succeed("send", "charge_credit", "t1", "m1", settings=seeded)


@pytest.mark.parametrize(
    ("message_id", "why"),
    [
        ("m2", "rejected: insufficient credit: account 'account-1' cannot pay 3"),
        ("m9", "invalid: no usage is recorded for task 't1', message 'm9'"),
    ],
)
def test_inline_send_of_a_job_that_dies_exits_with_1(
    seeded: dict[str, str], message_id: str, why: str
) -> None:
    """A job that ends as a dead letter makes the command fail with the kind and the reason."""
    succeed("send", "charge_credit", "t1", "m1", settings=seeded)
    done = jobsctl("send", "charge_credit", "t1", message_id, settings=seeded)
    assert done.returncode == 1
    assert f"dead letter after attempt 1 ({why})" in done.stdout
    assert done.stderr == ""


def test_inline_send_tells_each_retry(seeded: dict[str, str]) -> None:
    """A job that is tried again is followed over its attempts."""
    with serve_model() as server:
        settings = seeded | {"JOBS_LLM_URL": server.url}
        server.answers = [Answer(500), Answer(503), said("a summary")]
        flaky = succeed("send", "summarize_chat", "chat-1", "2", settings=settings)
        server.answers = [Answer(500)]
        broken = jobsctl("send", "summarize_chat", "chat-2", "3", settings=settings)
    assert "attempt 1 failed (transient: the model's API answers 500 Internal Server Error), again" in flaky
    assert "attempt 2 failed (transient: the model's API answers 503 Service Unavailable), again in" in flaky
    assert flaky.splitlines()[-1].endswith("completed on attempt 3")
    assert broken.returncode == 1
    assert "dead letter after attempt 3 (transient" in broken.stdout


def test_delay_puts_the_job_off(seeded: dict[str, str]) -> None:
    """`--delay` is heeded by the inline broker as well."""
    assert "completed" in succeed("send", "charge_credit", "t1", "m1", "--delay", "300ms", settings=seeded)
    assert "JOBS_MAX_DELAY" in fail(1, "send", "charge_credit", "t1", "m1", "--delay", "90d", settings=seeded)


def test_rabbitmq_send_stores_the_job(deployment: Deployment) -> None:
    """With RabbitMQ the command returns as soon as the broker has the job: a plain Dramatiq message."""
    words = ["send", "charge_credit", "--kwargs", '{"task_id": "7", "message_id": "007"}']
    (message_id,) = succeed(*words, settings=deployment.environment()).splitlines()
    (letter,) = deployment.rabbit.letters("critical")
    message = json.loads(letter.body)
    assert message["message_id"] == letter.properties.message_id == message_id
    assert message["actor_name"] == "charge_credit"
    assert message["kwargs"] == {"task_id": "7", "message_id": "007"}


def test_rabbitmq_send_with_a_delay(deployment: Deployment) -> None:
    """A delayed job is in the ladder and not in its queue."""
    words = ["send", "summarize_chat", "c1", "1", "--delay", "1h", "--count", "2"]
    assert len(succeed(*words, settings=deployment.environment()).splitlines()) == 2
    waiting = deployment.waiting("llm")
    assert sum(waiting.values()) == 2
    assert all(name.startswith("llm.delay") for name in waiting)


def test_another_application_is_found_in_the_working_directory(
    tmp_path: Path, seeded: dict[str, str]
) -> None:
    """JOBS_APP may name a module that imports `jobs` and adds actors of its own."""
    (tmp_path / "my_actors.py").write_text(MY_ACTORS + "\nstore, seed = jobs.store, jobs.seed\n")
    settings = seeded | {"JOBS_APP": "my_actors", "PYTHONPATH": str(tmp_path), "PROBE_FOLDER": str(tmp_path)}
    succeed("send", "greet", "7", settings=settings)
    assert (tmp_path / "greeting").read_text() == "hello 7"
