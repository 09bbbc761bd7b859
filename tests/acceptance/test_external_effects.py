"""Is a provider called once, and is it said when nobody knows, whatever happens to the worker in between?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest
from dramatiq import Message

from middleware import Store

from ..integration.keyed_jobs import rows
from ..payment_provider import PaymentProvider, serve_payments
from ..waiting import wait_until
from .deployment import Deployment
from .workers import Worker

MODULES: Final = ("tests.acceptance.paying", "tests.examples.payments")
LEASE: Final = {"JOBS_EFFECT_LEASE": "2s"}


@pytest.fixture
def provider() -> Iterator[PaymentProvider]:
    """The payment provider."""
    with serve_payments() as provider:
        yield provider


@pytest.fixture
def store(deployment: Deployment) -> Iterator[Store]:
    """A look into the deployment's database."""
    store = Store(deployment.database_url)
    yield store
    store.dispose()


def start(deployment: Deployment, provider: PaymentProvider, **settings: str) -> Worker:
    """Start a worker that can pay."""
    own = {"PAYMENTS_URL": provider.url, **LEASE, **settings}
    return deployment.start(modules=MODULES, settings=own).wait_ready()


def job(actor: str, *args: Any) -> Message[Any]:
    """Return a job of one of the actors."""
    return Message("critical", actor, args, {}, {})


@contextmanager
def nothing_is_confirmed(store: Store) -> Iterator[None]:
    """Keep everybody from the ledger, and so from confirming, while the block runs."""
    url = store.url.set(drivername="postgresql").render_as_string(False)
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE job_ledger IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()


def kill_before_confirmation(
    deployment: Deployment, provider: PaymentProvider, store: Store, message: Message[Any]
) -> None:
    """Run a job up to the provider's 200, and kill its worker before it can confirm."""
    worker = start(deployment, provider)
    locks: list[Any] = []

    def lock() -> None:
        locks.append(nothing_is_confirmed(store))
        locks[0].__enter__()

    provider.meanwhile = lock
    deployment.send(message)
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    wait_until(lambda: rows(store.engine, waiting), what="the confirmation to wait for the lock")
    worker.kill()
    provider.meanwhile = lambda: None
    locks[0].__exit__(None, None, None)
    assert rows(store.engine, "SELECT state FROM job_intents") == ["held"]


@pytest.mark.parametrize("actor", ["pay", "pay_async"])
def test_a_worker_killed_before_its_confirmation_leaves_an_unknown_outcome(
    deployment: Deployment, provider: PaymentProvider, store: Store, actor: str
) -> None:
    """SIGKILL between the provider's 200 and the confirmation: one call, then a dead letter that says so."""
    kill_before_confirmation(deployment, provider, store, job(actor, "a"))
    start(deployment, provider)
    letter = deployment.wait_for_dead_letter()
    assert letter.headers["jobs-kind"] == "unknown_outcome"
    assert "no confirmation of attempt 1 by " in letter.headers["jobs-reason"]
    assert len(provider.calls) == len(provider.charges) == 1
    assert rows(store.engine, "SELECT key FROM job_ledger") == []
    assert deployment.open() == 0


def test_a_provider_that_can_be_asked_settles_it(
    deployment: Deployment, provider: PaymentProvider, store: Store
) -> None:
    """The same with reconcile=: the provider is asked, the charge is confirmed, the credit added once."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO accounts (id, balance) VALUES ('ada', 0)")
    kill_before_confirmation(deployment, provider, store, job("top_up", "ada", "o1", 7))
    start(deployment, provider)
    wait_until(lambda: rows(store.engine, "SELECT key FROM job_ledger"), what="the key to be spent")
    assert rows(store.engine, "SELECT balance FROM accounts") == [7]
    assert rows(store.engine, "SELECT state, result FROM job_intents") == [
        ("confirmed", '"charge of top-up:ada:o1"')
    ]
    assert provider.calls == ["top-up:ada:o1"]
    wait_until(lambda: deployment.waiting() == {}, what="the job to end")


def test_the_example_charges_once(deployment: Deployment, provider: PaymentProvider, store: Store) -> None:
    """A refused card is final, an error of the provider's is asked about, a reply that is lost as well."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO accounts (id, balance) VALUES ('ada', 0)")
    provider.answers = [503, 0, 402]
    start(deployment, provider, JOBS_MIN_BACKOFF="100ms", JOBS_MAX_BACKOFF="200ms")
    for number, calls in ((1, 2), (2, 3)):  # the second order's card is refused
        deployment.send(job("top_up", "ada", f"o{number}", 7))
        wait_until(lambda calls=calls: len(provider.calls) == calls, what=f"{calls} calls")  # type: ignore[misc]
        wait_until(lambda: deployment.open() == 0, what="the job to end")
    assert deployment.wait_for_dead_letter().headers["jobs-kind"] == "invalid"
    wait_until(lambda: rows(store.engine, "SELECT balance FROM accounts") == [7], what="the credit")
    assert provider.charges == {"top-up:ada:o1": 7}
    assert rows(store.engine, "SELECT key FROM job_ledger") == ["top-up:ada:o1"]


def freeze_in_call(
    deployment: Deployment, provider: PaymentProvider, store: Store, message: Message[Any]
) -> tuple[Worker, Any]:
    """Run a job up to its call, freeze its worker until its lease is over, have the broker take it back."""
    worker = start(deployment, provider)
    frozen = worker.frozen()
    frozen_in: list[bool] = []

    def freeze() -> None:
        if not frozen_in:
            frozen_in.append(True)
            frozen.__enter__()

    provider.meanwhile = freeze
    deployment.send(message)
    expired = "SELECT 1 FROM job_intents WHERE lease_until < clock_timestamp()"
    wait_until(lambda: rows(store.engine, expired), what="the lease to run out")
    deployment.rabbit.close_connections("critical")
    return worker, frozen


def test_a_stale_worker_cannot_confirm_over_a_newer_attempt(
    deployment: Deployment, provider: PaymentProvider, store: Store
) -> None:
    """SIGSTOP past the lease, a newer attempt is confirmed, SIGCONT: the newer one's rows stay."""
    stale, frozen = freeze_in_call(deployment, provider, store, job("pay_again", "a"))
    fresh = start(deployment, provider)
    wait_until(lambda: rows(store.engine, "SELECT key FROM job_ledger"), what="the newer attempt")
    frozen.__exit__(None, None, None)
    states = "SELECT fence, state FROM job_intents ORDER BY fence"
    both = [(1, "confirmed"), (2, "confirmed")]
    wait_until(lambda: rows(store.engine, states) == both, what="the late confirmation to be stored")
    assert rows(store.engine, "SELECT reference, account_id FROM credit_entries") == [
        ("a", str(fresh.pids()[0]))
    ]
    assert provider.charges == {"pay-again:a": 1}
    assert len(provider.calls) == 2
    wait_until(lambda: deployment.waiting() == {}, what="both deliveries to end")
    assert stale.exit_code is None


def test_a_late_confirmation_resolves_a_parked_job(
    deployment: Deployment, provider: PaymentProvider, store: Store
) -> None:
    """SIGSTOP past the lease, the job is a dead letter, SIGCONT: its effect is known to have taken place."""
    _, frozen = freeze_in_call(deployment, provider, store, job("pay", "a"))
    start(deployment, provider)
    assert deployment.wait_for_dead_letter().headers["jobs-kind"] == "unknown_outcome"
    assert rows(store.engine, "SELECT state FROM job_intents") == ["unknown"]
    frozen.__exit__(None, None, None)
    wait_until(lambda: rows(store.engine, "SELECT key FROM job_ledger") == ["pay:a"], what="the confirmation")
    assert rows(store.engine, "SELECT state FROM job_intents") == ["confirmed"]
    assert provider.calls == ["pay:a"]


def test_a_worker_killed_before_its_call_costs_nothing_but_its_lease(
    deployment: Deployment, provider: PaymentProvider, store: Store
) -> None:
    """SIGKILL before the actor asked for its key: nobody was called, and the job runs again by itself."""
    worker = start(deployment, provider)
    deployment.send(job("pay", "a", "go"))
    wait_until(lambda: deployment.seen.count("began", "a"), what="the job to begin")
    worker.kill()
    deployment.gates.open("go")
    start(deployment, provider)
    wait_until(lambda: rows(store.engine, "SELECT key FROM job_ledger"), what="the job to complete")
    states = rows(store.engine, "SELECT fence, state FROM job_intents ORDER BY fence")
    assert states == [(1, "released"), (2, "confirmed")]
    assert len(provider.calls) == 1


@pytest.mark.parametrize("actor", ["pay", "pay_async"])
@pytest.mark.slow
def test_a_shutdown_before_the_call_costs_nothing(
    deployment: Deployment, provider: PaymentProvider, store: Store, actor: str
) -> None:
    """A job that is interrupted before it asked for its key is returned, and runs at once elsewhere."""
    worker = start(deployment, provider, JOBS_SHUTDOWN_GRACE="500ms", JOBS_EFFECT_LEASE="10m")
    deployment.send(job(actor, "a", "go"))
    wait_until(lambda: deployment.seen.count("began", "a"), what="the job to begin")
    worker.stop()
    assert rows(store.engine, "SELECT state FROM job_intents") == ["released"]
    deployment.gates.open("go")
    start(deployment, provider)
    wait_until(lambda: rows(store.engine, "SELECT key FROM job_ledger"), what="the job to complete")
    assert [event.attempt for event in deployment.seen.of("began")] == [1, 1]
    assert len(provider.calls) == 1


@pytest.mark.parametrize("actor", ["pay", "pay_async"])
@pytest.mark.slow
def test_a_shutdown_in_the_call_leaves_an_unknown_outcome(
    deployment: Deployment, provider: PaymentProvider, store: Store, actor: str
) -> None:
    """A job that is interrupted while it waits for the provider's reply is not repeated."""
    worker = start(deployment, provider, JOBS_SHUTDOWN_GRACE="500ms", JOBS_EFFECT_LEASE="10m")
    provider.meanwhile = lambda: wait_until(
        lambda: "shutdown.interrupted" in worker.text(), what="the interrupt"
    )
    deployment.send(job(actor, "a"))
    wait_until(lambda: provider.calls, what="the call")
    worker.stop()
    assert rows(store.engine, "SELECT state FROM job_intents") == ["unknown"]
    provider.meanwhile = lambda: None
    start(deployment, provider)
    assert deployment.wait_for_dead_letter().headers["jobs-kind"] == "unknown_outcome"
    assert len(provider.calls) == 1


@pytest.mark.parametrize("database", ["postgresql", "sqlite"])
@pytest.mark.parametrize(
    ("actor", "kind"),
    [("swallow", "unexpected"), ("swallow_late", "unexpected"), ("swallow_external", "unknown_outcome")],
)
def test_a_swallowed_sql_error_is_a_failed_attempt(
    deployment: Deployment, provider: PaymentProvider, sqlite_url: str, database: str, actor: str, kind: str
) -> None:
    """Whatever the effect and the database: nothing is written, and the job does not count as completed."""
    url = sqlite_url if database == "sqlite" else deployment.database_url
    start(deployment, provider, JOBS_DATABASE_URL=url)
    deployment.send(job(actor, "a"))
    letter = deployment.wait_for_dead_letter()
    assert letter.headers["jobs-kind"] == kind
    assert deployment.seen.count("swallowed", "a") == 1
    store = Store(url)
    assert rows(store.engine, "SELECT count(*) FROM credit_entries") == [0]
    assert rows(store.engine, "SELECT count(*) FROM job_ledger") == [0]
    store.dispose()
