"""Is the ledger's memory compared with everything that lets a delivery come late?"""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from dramatiq import Worker

from middleware import ConfigurationError, Failures, InlineBroker, Ledger, Queue, Retention, Store, TimeLimits
from middleware.failures.policy import RetryPolicy

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def build(folder: Path, retention: Retention, **options: Any) -> tuple[InlineBroker, Ledger]:
    """Return a broker with one keyed actor, whose jobs may be delayed by 10 days and wait for 2."""
    ledger = Ledger(Store(f"sqlite:///{folder}/none.sqlite3"), retention=retention)
    broker = InlineBroker(
        queues=[Queue(name="jobs", time_limit=MINUTE, wait_limit=2 * DAY), Queue(name="other")],
        middleware=[TimeLimits(), ledger, Failures(max_retries=4, min_backoff=DAY, max_backoff=4 * DAY)],
        max_delay=10 * DAY,
    )

    @dramatiq.actor(broker=broker, queue_name="jobs", idempotency_key="a:{one}", **options)
    def act(one: str) -> None: ...

    @dramatiq.actor(broker=broker, queue_name="other", max_retries=1000)
    def keyless(one: str) -> None: ...

    return broker, ledger


def keyed(broker: InlineBroker) -> list[Any]:
    """Return its keyed actor."""
    return [broker.actors["act"]]


# 10 d of delay + 2 d of waiting + pauses of 2, 4, 4 and 4 d rounded up by an eighth + 5 attempts + 30 d + 1 h
NEEDED = 10 * DAY + 2 * DAY + 14 * DAY * 9 / 8 + 5 * MINUTE + 30 * DAY + timedelta(hours=1)


def test_less_than_the_sum_is_refused_with_the_sum(tmp_path: Path) -> None:
    """All terms are in the text, with the names of what they come from; exactly the sum is enough."""
    broker, _ = build(tmp_path, Retention())
    assert Retention(ledger=NEEDED).problem(broker, keyed(broker)) == ""
    problem = Retention(ledger=NEEDED - timedelta(seconds=1)).problem(broker, keyed(broker))
    assert problem == (
        "expected JOBS_LEDGER_RETENTION to be at least 57d19h5m (JOBS_MAX_DELAY 10d + wait_limit of queue "
        "'jobs' 2d + attempts and retries of actor 'act' 15d18h5m + JOBS_REPLAY_WINDOW 30d + 1h for clocks "
        "that differ), got: 57d19h4m59s"
    )
    broker.close()


@pytest.mark.parametrize(
    ("options", "longer"),
    [
        ({"max_retries": 5}, 4 * DAY * 9 / 8 + MINUTE),
        ({"max_backoff": 5 * 86_400_000}, 2 * DAY * 9 / 8),
        ({"time_limit": 1000}, -5 * timedelta(seconds=59)),
    ],
    ids=str,
)
def test_the_actors_own_options_count(tmp_path: Path, options: dict[str, Any], longer: timedelta) -> None:
    """Retries, backoff and time limit are those of the actor where it has them."""
    broker, _ = build(tmp_path, Retention(), **options)
    assert Retention(ledger=NEEDED + longer).problem(broker, keyed(broker)) == ""
    assert Retention(ledger=NEEDED + longer - timedelta(seconds=1)).problem(broker, keyed(broker)) != ""
    broker.close()


def test_the_replay_window_counts(tmp_path: Path) -> None:
    """A dead letter may be replayed so long after all that."""
    broker, _ = build(tmp_path, Retention())
    assert Retention(ledger=NEEDED + DAY, replay=31 * DAY).problem(broker, keyed(broker)) == ""
    assert "JOBS_REPLAY_WINDOW 31d" in Retention(ledger=NEEDED, replay=31 * DAY).problem(
        broker, keyed(broker)
    )
    broker.close()


def test_a_worker_does_not_start_with_less(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 78 after one line with the sum and the way out; also for a worker of another queue."""
    monkeypatch.setattr("middleware.effects.ledger.check_store", lambda *_: None)
    broker, ledger = build(tmp_path, Retention(ledger=50 * DAY))
    with pytest.raises(SystemExit) as caught, caplog.at_level(logging.CRITICAL):
        ledger.before_worker_boot(broker, Worker(broker, queues={"jobs"}))
    assert caught.value.code == 78
    assert "Refusing to start: expected JOBS_LEDGER_RETENTION to be at least 57d19h5m (" in caplog.text
    assert "got: 50d; raise it, or lower what it is made of: JOBS_MAX_DELAY" in caplog.text
    broker.close()


@pytest.mark.parametrize("options", [{"max_retries": None}, {"retry_when": lambda *_: True}], ids=["n", "w"])
def test_retries_without_a_bound_are_warned_of(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
) -> None:
    """No retention is long enough for them: the worker starts, and says what becomes of such a job."""
    monkeypatch.setattr("middleware.effects.ledger.check_store", lambda *_: None)
    broker, ledger = build(tmp_path, Retention(ledger=50 * DAY), **options)
    ledger.before_worker_boot(broker, Worker(broker, queues={"jobs"}))
    assert "retries without a bound for act; a job that is retried for longer than" in caplog.text
    assert "unprovable" in caplog.text
    broker.close()


def test_nobody_prunes_what_may_be_asked_for(tmp_path: Path) -> None:
    """The sum holds for whoever prunes, whatever age he names."""
    broker, ledger = build(tmp_path, Retention())
    ledger.pruner(broker)
    ledger.pruner(broker, NEEDED)
    with pytest.raises(ConfigurationError, match=r"^expected --older-than to be .*h5m .*got: 57d"):
        ledger.pruner(broker, 57 * DAY)
    broker.close()


def test_a_window_holds_every_pause_and_every_attempt() -> None:
    """Any number of retries is summed up, and none is an attempt."""
    second = timedelta(seconds=1)
    assert RetryPolicy(0, second, DAY).window(MINUTE) == MINUTE
    assert RetryPolicy(None, second, DAY).window(MINUTE) is None
    endless = RetryPolicy(10**9, second, DAY).window(MINUTE)
    assert endless is not None
    assert endless > 36_500 * DAY
