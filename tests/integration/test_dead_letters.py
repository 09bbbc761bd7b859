"""Does a job that failed end in the dead letters whatever the broker refuses, and does it stay there?"""

from __future__ import annotations

import json

import dramatiq
import pika.exceptions

from middleware import BusinessReject
from middleware.transport.delivery import current_delivery
from middleware.transport.evidence import HEADER_BUDGET, HISTORY, KIND, REASON, TRACEBACK
from tests.brokers import QUEUE
from tests.fixtures_broker import MakeBroker, StartWorker
from tests.journal import Journal
from tests.rabbit import Rabbit
from tests.waiting import wait_until

DEAD = f"{QUEUE}.XQ"
TOP_LEVEL = f"{QUEUE}.delay.08"
FILLER = b"filler"


def refuse_publishes(rabbit: Rabbit, pattern: str, *queues: str) -> None:
    """Have queues refuse all publishes: they hold a filler and may hold no more."""
    rabbit.set_policy(pattern, max_length=1)
    with rabbit.channel() as channel:
        channel.confirm_delivery()
        for queue in queues:
            refused = False
            while not refused:  # once the policy is in force; the limit is soft by a few messages
                try:
                    channel.basic_publish("", queue, FILLER)
                except pika.exceptions.NackError:
                    refused = True


def test_forty_looks_and_forty_crashes_do_not_destroy_a_dead_letter(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """A dead letter outlives forty returns and forty readers that die with it in hand."""
    broker = make_broker()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def reject() -> None:
        raise BusinessReject("no")

    start(broker)
    sent = reject.send()
    rabbit.wait_for_letters(DEAD)
    with rabbit.channel() as channel:
        for _ in range(40):
            method = wait_until(lambda: channel.basic_get(DEAD)[0], what="the dead letter")
            assert method is not None
            channel.basic_nack(method.delivery_tag, requeue=True)
    for _ in range(40):
        with rabbit.channel() as channel:
            wait_until(lambda channel=channel: channel.basic_get(DEAD)[0], what="the dead letter")  # type: ignore[misc]
    (letter,) = rabbit.wait_for_letters(DEAD)
    assert letter.body == sent.encode()
    assert letter.headers[KIND] == "rejected"


def test_a_retry_that_is_refused_becomes_a_dead_letter_natively(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """If the ladder takes no retry, the broker itself dead-letters the original, and its neighbours go on."""
    broker = make_broker()
    journal = Journal()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, min_backoff=26_000, max_backoff=26_000)
    def run(fails: bool) -> None:
        journal.note(fails)
        if fails:
            raise RuntimeError("fails")

    start(broker)
    refuse_publishes(rabbit, r"\.delay\.", TOP_LEVEL)
    sent = run.send(True)
    for _ in range(10):
        run.send(False)
    (letter,) = rabbit.wait_for_letters(DEAD)
    assert letter.body == sent.encode()
    assert letter.headers["x-death"][0]["reason"] == "rejected"
    journal.wait_for(11)
    wait_until(lambda: rabbit.ready(QUEUE) == 0, what="the queue to be empty")
    assert journal.entries.count(True) == 1


def test_a_job_that_neither_ladder_nor_dead_letters_take_is_not_lost(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """A job that can go nowhere stays with its queue, which counts it as failed."""
    broker = make_broker()

    @dramatiq.actor(broker=broker, queue_name=QUEUE, min_backoff=26_000, max_backoff=26_000)
    def run() -> None:
        raise RuntimeError("fails")

    start(broker)
    refuse_publishes(rabbit, r"\.(delay\.|XQ)", DEAD, TOP_LEVEL)
    fillers = rabbit.ready(DEAD)
    run.send()
    watcher = make_broker(management_url=rabbit.management_url)
    wait_until(
        lambda: watcher.queue_counts(QUEUE).failed == fillers + 1, what="the job to be counted as failed"
    )
    assert all(letter.body == FILLER for letter in rabbit.letters(DEAD))


def test_evidence_stays_within_its_budget(
    rabbit: Rabbit, make_broker: MakeBroker, start: StartWorker
) -> None:
    """However long, deep and strange the errors, headers stay under 32 KiB and all attempts happen."""
    broker = make_broker()

    def dig(depth: int) -> None:
        if not depth:
            raise RuntimeError("é😀\ud800 " * 50_000)
        try:
            dig(depth - 1)
        except RuntimeError as error:
            raise RuntimeError(f"{'long ' * 1000}{depth}") from error

    @dramatiq.actor(broker=broker, queue_name=QUEUE, max_retries=12, min_backoff=0, max_backoff=0)
    def fail() -> None:
        current = current_delivery()
        dig(current.attempt % 4 if current is not None else 0)

    start(broker)
    fail.send()
    (letter,) = rabbit.wait_for_letters(DEAD)
    ours = {name: value for name, value in letter.headers.items() if name.startswith("jobs-")}
    size = sum(len(name) + len(str(value).encode()) for name, value in ours.items())
    assert size < HEADER_BUDGET
    history = json.loads(ours[HISTORY])
    assert history[0]["attempt"] == 1
    assert history[-1]["attempt"] == 13
    assert len(history) + ours.get("jobs-history-dropped", 0) == 13
    assert ours[REASON]
    assert "RuntimeError" in ours[TRACEBACK]
