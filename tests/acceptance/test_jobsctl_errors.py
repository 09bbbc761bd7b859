"""What does `jobsctl` say when something is wrong, and with which exit code?"""

from __future__ import annotations

from pathlib import Path

import pytest

from .commands import embedded, fail, jobsctl

pytestmark = pytest.mark.slow  # a process for each command

NOBODY = "127.0.0.1:1"
"""An address where nothing listens."""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["send", "charge_credt", "t1", "m1"],
            "expected ACTOR to be one of the declared actors (charge_credit, index_resource, send_email, "
            "summarize_chat), got: 'charge_credt'; did you mean charge_credit?",
        ),
        (
            ["send", "charge_credit", "t1"],
            "expected the arguments to fit charge_credit(task_id: str, message_id: str), got: ('t1'); "
            "missing a required argument: 'message_id'",
        ),
        (
            ["send", "charge_credit", "t1", ""],
            "expected message_id, a part of the idempotency key, to be",
        ),
        (
            ["send", "charge_credit", "t1", "m1", "--delay", "soon"],
            "expected --delay to be a number with ms, s, m, h or d, such as 30s or 1h30m, got: 'soon'",
        ),
        (
            ["send", "charge_credit", "--kwargs", "[1]"],
            "expected --kwargs to be a JSON object, got: '[1]'",
        ),
        (
            ["send", "summarize_chat", "x" * 70_000, "1"],
            "65536",
        ),
        (["seed", "--accounts", "0"], "expected --accounts to be at least 1, got: 0"),
        (["seed", "--acounts", "1"], "No such option: --acounts"),
        (["queue"], "No such command 'queue'"),
    ],
)
def test_wrong_input_exits_with_2(tmp_path: Path, words: list[str], text: str) -> None:
    """What was typed wrongly is named with what would be right."""
    assert text in fail(2, *words, settings=embedded(tmp_path))


def test_a_wrong_setting_exits_with_2(tmp_path: Path) -> None:
    """A wrong setting is one clear line."""
    settings = embedded(tmp_path) | {"JOBS_MIN_BACKOFF": "soon"}
    assert fail(2, "queues", settings=settings) == (
        "jobsctl: expected JOBS_MIN_BACKOFF to be a duration from 10ms to 1h, got: 'soon'; "
        "write it like 500ms, 30s, 5m, 1h30m or 30d (a plain number means seconds)\n"
    )


@pytest.mark.parametrize(
    ("application", "text"),
    [("absent", "expected JOBS_APP to be a module that can be imported"), ("json", "without store, seed")],
)
def test_a_wrong_application_exits_with_2(tmp_path: Path, application: str, text: str) -> None:
    """JOBS_APP must name a module that offers what the command line needs."""
    assert text in fail(2, "queues", settings=embedded(tmp_path) | {"JOBS_APP": application})


def test_an_application_that_sets_no_broker_is_told_its_first_line(tmp_path: Path) -> None:
    """A module that declares actors before a broker of the kit's is set is told which line it lacks."""
    (tmp_path / "bare.py").write_text(
        "import dramatiq\n@dramatiq.actor(idempotency_key='a:{b}')\ndef a(b: str) -> None: ...\n"
    )
    settings = embedded(tmp_path) | {"JOBS_APP": "bare", "PYTHONPATH": str(tmp_path)}
    assert "begins with `from jobs import seed, store`" in fail(2, "actors", settings=settings)
    assert "begins with `from jobs import seed, store`" in jobsctl("check", settings=settings).stdout


def test_missing_tables_name_the_command(tmp_path: Path) -> None:
    """Without tables, `seed` and `send` exit with 1 and say which command makes them."""
    settings = embedded(tmp_path)
    assert "jobsctl migrate" in fail(1, "seed", settings=settings)
    assert "jobsctl migrate" in fail(1, "send", "charge_credit", "t1", "m1", settings=settings)


def test_a_broker_that_is_down_exits_with_1(tmp_path: Path) -> None:
    """A broker that does not answer is named; nothing was stored."""
    settings = embedded(tmp_path) | {"JOBS_BROKER_URL": f"amqp://{NOBODY}", "JOBS_PUBLISH_TIMEOUT": "1s"}
    assert "127.0.0.1:1" in fail(1, "queues", settings=settings)
    text = fail(1, "send", "summarize_chat", "c1", "1", settings=settings)
    assert "certainly not stored" in text
    assert "127.0.0.1:1" in text


@pytest.mark.parametrize("command", ["migrate", "seed"])
def test_a_database_that_is_down_exits_with_1(tmp_path: Path, command: str) -> None:
    """A database that does not answer is told in words, without its password."""
    url = f"postgresql+psycopg://user:s3cret@{NOBODY}/jobs"
    text = fail(1, command, settings=embedded(tmp_path) | {"JOBS_DATABASE_URL": url})
    assert "expected the database to answer" in text
    assert "JOBS_DATABASE_URL" in text
    assert "s3cret" not in text
