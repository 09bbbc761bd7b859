"""Whose time is a sampled stack, and what does its thread wait for?"""

from __future__ import annotations

import pytest

from tests.bench.account import KERNEL, Account
from tests.bench.layers import (
    BROKER,
    DATABASE,
    IDLE,
    OTHER,
    ROOT,
    Frame,
    Sample,
    hot,
    inclusive,
    layer_of,
    read,
    role_of,
    short,
    waits_for,
)
from tests.bench.pace import Pace

PACKAGES = "/venv/lib/python3.11/site-packages"
WORKER = Frame("WorkerThread.run", f"{PACKAGES}/dramatiq/worker.py")
CONSUMER = Frame("ConsumerThread.run", f"{PACKAGES}/dramatiq/worker.py")
POLL = Frame("PollPoller.poll", f"{PACKAGES}/pika/adapters/select_connection.py")
EXECUTE = Frame("Session.execute", f"{PACKAGES}/sqlalchemy/orm/session.py")
WAIT = Frame("Connection.wait", f"{PACKAGES}/psycopg/connection.py")
KIT = Frame("JobBroker._end", f"{ROOT}/middleware/transport/broker.py")
SENDING = Frame("send", f"{ROOT}/middleware/transport/sending.py")
ACTOR = Frame("charge_credit", f"{ROOT}/jobs/credit.py")
LOCK = Frame("Condition.wait", "/usr/lib/python3.11/threading.py")
DECODER = Frame("JSONDecoder.decode", "/usr/lib/python3.11/json/decoder.py")
GET = Frame("Queue.get", "/usr/lib/python3.11/queue.py")


def test_stacks_are_read_as_they_are_written() -> None:
    """Threads and line numbers are left out; names with brackets and semicolons' neighbours stay whole."""
    raw = [
        "thread (12): Thread-4;WorkerThread.run (/a/dramatiq/worker.py:535);<lambda> (<string>) 17",
        "commit (<sqlalchemy generated _go() wrapper for Session.commit>:2) 1",
        "",
    ]
    assert list(read(raw)) == [
        Sample((Frame("WorkerThread.run", "/a/dramatiq/worker.py"), Frame("<lambda>", "<string>")), 17),
        Sample((Frame("commit", "<sqlalchemy generated _go() wrapper for Session.commit>"),), 1),
    ]


@pytest.mark.parametrize(
    ("frames", "layer"),
    [
        ((WORKER,), "Dramatiq"),
        ((WORKER, KIT), "kit"),
        ((WORKER, KIT, ACTOR), "application"),
        ((WORKER, KIT, ACTOR, EXECUTE), "SQLAlchemy"),
        ((WORKER, KIT, ACTOR, EXECUTE, WAIT), "client: psycopg"),
        ((CONSUMER, KIT, POLL), "client: pika"),
        ((WORKER, KIT, DECODER), "kit"),
        ((LOCK,), OTHER),
    ],
)
def test_the_innermost_known_frame_owns_a_stack(frames: tuple[Frame, ...], layer: str) -> None:
    """The standard library's time is its caller's."""
    assert layer_of(frames) == layer


def test_a_middleware_of_dramatiq_is_not_the_kit() -> None:
    """A folder of the same name elsewhere belongs to its package."""
    assert layer_of((Frame("after", f"{PACKAGES}/dramatiq/middleware/pipelines.py"),)) == "Dramatiq"


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        ((WORKER, EXECUTE, WAIT), DATABASE),
        ((WORKER, Frame("QueuePool._do_get", f"{PACKAGES}/sqlalchemy/pool/impl.py"), LOCK), DATABASE),
        ((CONSUMER, KIT, POLL), BROKER),
        ((SENDING, LOCK), BROKER),
        ((WORKER, GET, LOCK), IDLE),
        ((WORKER, GET), IDLE),
        ((WORKER, KIT), None),
        ((CONSUMER, POLL, KIT), None),
        ((WORKER, EXECUTE), None),
    ],
)
def test_a_thread_waits_where_its_innermost_frame_does(frames: tuple[Frame, ...], what: str | None) -> None:
    """A poll that has returned and runs its callbacks is work."""
    assert waits_for(frames) == what


def test_threads_are_known_by_what_they_run() -> None:
    """Names that a thread is given by chance say nothing."""
    assert [role_of([WORKER, KIT]), role_of([CONSUMER]), role_of([KIT])] == [
        "worker threads",
        "consumer thread",
        "other threads",
    ]


def test_hot_functions_name_what_they_called_of_the_standard_library() -> None:
    """Such a call is told from the function's own code, and lines of one function are one."""
    found = hot([Sample((KIT, DECODER), 3), Sample((KIT,), 2), Sample((KIT,), 1), Sample((LOCK,), 1)])
    name = "JobBroker._end (middleware/transport/broker.py)"
    assert found["kit"] == {f"{name} › JSONDecoder.decode": 3, name: 3}
    assert found[OTHER] == {"Condition.wait (threading.py)": 1}


def test_a_function_is_counted_with_what_it_calls() -> None:
    """Once a stack, however deep it calls itself; the standard library's own functions are left out."""
    found = inclusive([Sample((WORKER, KIT, KIT, DECODER), 3), Sample((WORKER,), 2)])
    assert found == {str(WORKER): 5, str(KIT): 3}


def test_paths_begin_at_their_package() -> None:
    """Where the machine keeps a package says nothing."""
    assert short(f"{PACKAGES}/pika/frame.py") == "pika/frame.py"
    assert short(f"{ROOT}/jobs/credit.py") == "jobs/credit.py"
    assert short("/usr/lib/python3.11/json/decoder.py") == "json/decoder.py"
    assert short("<string>") == "<string>"


ACCOUNT = Account(
    pace=Pace(jobs_per_second=1000.0, user_us=300.0, system_us=50.0),
    processor=[Sample((WORKER, KIT), 30), Sample((WORKER, ACTOR), 10)],
    threads=[Sample((WORKER, KIT), 60), Sample((WORKER, EXECUTE, WAIT), 140), Sample((LOCK,), 100)],
    looks=100,
)


def test_shares_are_laid_over_the_time_that_was_counted() -> None:
    """The layers' times and the kernel's add up to the processor time of one job."""
    assert ACCOUNT.processor_us() == {"kit": 225.0, "application": 75.0, KERNEL: 50.0}


def test_the_lock_is_a_second_opinion() -> None:
    """Held in 40 of 100 looks at 1,000 jobs a second, it is held for 400 µs a job."""
    assert ACCOUNT.lock_us() == pytest.approx(400.0)


def test_threads_are_told_apart_by_what_they_are_at() -> None:
    """Each look sees every thread: 60 of 100 are 0.6 threads' time, 600 µs a job."""
    found = ACCOUNT.threads_us()
    assert found["worker threads"] == {DATABASE: pytest.approx(1400.0), "kit": pytest.approx(600.0)}
    assert found["other threads"] == {IDLE: pytest.approx(1000.0)}


def test_what_is_printed_names_every_layer() -> None:
    """Idle roles are left out of the tables, and everything is in the record."""
    lines = ACCOUNT.text("charge").splitlines()
    assert [line.removeprefix("charge: ") for line in lines if line.startswith("charge: ")][1:] == [
        "processor",
        "worker threads, of their time",
        "hottest in kit",
        "hottest in application",
        "functions with all that they call",
    ]
    assert "    225.0   64.3%  kit" in lines
    assert set(ACCOUNT.record()) == {
        *("pace", "processor_us", "lock_us", "threads_us", "hottest_us", "inclusive_us"),
    }
