"""What do other clients and strange actors do to a worker? It goes on, and the next job runs."""

from __future__ import annotations

import datetime
import struct
from typing import Any

import dramatiq
import pika
import pytest
from dramatiq.middleware import Shutdown as ShutdownInterrupt

from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.journal import Journal
from tests.rabbit import Rabbit

DEAD = f"{QUEUE}.XQ"


class Unprintable(Exception):
    """An error that ends whoever prints it."""

    def __str__(self) -> str:
        raise SystemExit("no text")


def test_a_timestamp_beyond_all_dates_does_not_stop_the_queue(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message of another client whose header holds milliseconds as a timestamp runs like any other."""
    broker, journal = make_broker(), Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note(number: int) -> None:
        journal.note(number)

    note.send(1)
    encode = pika.data.encode_value

    def in_milliseconds(pieces: list[bytes], value: Any) -> int:
        if isinstance(value, datetime.datetime):
            pieces.append(struct.pack(">cQ", b"T", 1_764_000_000_000))
            return 9
        return encode(pieces, value)

    with monkeypatch.context() as patched, rabbit.channel() as channel:
        patched.setattr(pika.data, "encode_value", in_milliseconds)
        properties = pika.BasicProperties(headers={"sent": datetime.datetime.now(datetime.UTC)})
        channel.basic_publish("", QUEUE, note.message(2).encode(), properties)
    note.send(3)
    start(broker)
    assert sorted(journal.wait_for(3)) == [1, 2, 3]


@pytest.mark.parametrize("error", [SystemExit("x"), KeyboardInterrupt()], ids=["exit", "interrupt"])
def test_an_async_actor_cannot_end_the_loop_of_the_others(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, error: BaseException
) -> None:
    """An async actor that raises SystemExit or KeyboardInterrupt fails alone."""
    broker, journal = make_broker(), Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, max_retries=0)
    async def leave() -> None:
        raise error

    @dramatiq.actor(broker=broker, queue_name=QUEUE, max_retries=0)
    async def note(number: int) -> None:
        journal.note(number)

    start(broker)
    leave.send()
    (letter,) = rabbit.wait_for_letters(DEAD)
    assert type(error).__name__ in letter.headers["jobs-reason"]
    note.send(1)
    assert journal.wait_for(1) == [1]


@pytest.mark.parametrize("error", [Unprintable(), ShutdownInterrupt()], ids=["unprintable", "shutdown"])
def test_an_actor_that_raises_something_strange_is_a_dead_letter(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, error: BaseException
) -> None:
    """An error without a text, and an interrupt that the kit did not raise, count as failures."""
    broker = make_broker()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, max_retries=0)
    def fail() -> None:
        raise error

    start(broker)
    fail.send()
    (letter,) = rabbit.wait_for_letters(DEAD)
    assert letter.headers["jobs-kind"] == "unexpected"


@pytest.mark.parametrize(
    "change", [{"actor_name": ["x"]}, {"queue_name": 5}, {"args": 5}, {"options": {"delay": "x"}}]
)
def test_a_wrong_next_step_is_found_before_the_job_runs(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker, change: dict[str, Any]
) -> None:
    """A message whose pipeline's next step has a wrong type is undecodable: its actor does not run."""
    broker, journal = make_broker(), Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note() -> None:
        journal.note("ran")

    broken = note.message_with_options(pipe_target={**note.message().asdict(), **change})
    start(broker)
    rabbit.publish(QUEUE, broken.encode())
    (letter,) = rabbit.wait_for_letters(DEAD)
    assert letter.headers["jobs-kind"] == "undecodable"
    assert journal.entries == []
