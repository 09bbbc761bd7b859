"""Is it seen whether somebody does the maintenance, and does a process that does it end as it should?"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from middleware import Store
from middleware.effects.presence import last_seen

from ..fixtures_database import new_database
from ..waiting import stays, wait_until
from .commands import embedded, fail
from .deployment import Deployment

ABSENT = "maintenance.absent"


def seen(deployment: Deployment) -> timedelta | None:
    """Return how long ago a maintenance process was seen."""
    store = Store(deployment.database_url)
    try:
        return last_seen(store)
    finally:
        store.dispose()


def test_a_worker_says_that_nobody_does_the_maintenance(deployment: Deployment) -> None:
    """A worker that starts without any maintenance process says so, and works all the same."""
    assert seen(deployment) is None
    worker = deployment.start().wait_ready()
    wait_until(lambda: ABSENT in worker.text(), what="the warning")
    assert "seen=never" in worker.text()
    assert "run `jobsctl maintenance`" in worker.text()
    assert worker.exit_code is None


def test_a_worker_sees_the_maintenance(deployment: Deployment) -> None:
    """With a maintenance process there is nothing to say; with one that was seen long ago, there is."""
    deployment.maintain()
    wait_until(lambda: seen(deployment) is not None, what="the maintenance to say so")
    worker = deployment.start().wait_ready()
    stays(lambda: ABSENT not in worker.text(), what="no warning", seconds=0.5)
    deployment.maintenance[0].kill()
    store = Store(deployment.database_url)
    with store.writing() as connection:
        connection.execute(text("UPDATE job_maintenance SET seen_at = seen_at - interval '2 minutes'"))
    store.dispose()
    late = deployment.start().wait_ready()
    wait_until(lambda: ABSENT in late.text(), what="the warning")
    assert "seen='1" in late.text()


def test_several_may_run_and_each_ends_when_it_is_told(deployment: Deployment) -> None:
    """SIGTERM ends a maintenance process with code 0; it is no longer listed, and others stay."""
    first, second = deployment.maintain(), deployment.maintain()
    store = Store(deployment.database_url)

    def listed() -> int:
        with store.engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM job_maintenance")).scalar_one())

    wait_until(lambda: listed() == 2, what="both to be listed")
    assert first.terminate() == 0
    assert "maintenance: ended" in first.text()
    assert listed() == 1
    assert second.terminate() == 0
    assert listed() == 0
    assert "Traceback" not in first.text() + second.text()
    store.dispose()


def test_without_a_server_there_is_nothing_to_run(tmp_path: Path) -> None:
    """With the inline broker the command says who does the maintenance."""
    error = fail(2, "maintenance", settings=embedded(tmp_path))
    assert "expected JOBS_BROKER_URL to be amqp://…, got: inline://" in error


def test_a_database_without_tables_is_told(deployment: Deployment, postgresql_template: str) -> None:
    """Without its tables the command ends and names the one that creates them."""
    with new_database() as url:
        error = fail(1, "maintenance", settings=deployment.environment(JOBS_DATABASE_URL=url))
    assert "run `jobsctl migrate`" in error


@pytest.mark.parametrize("setting", ["0", "many"])
def test_a_wrong_limit_is_told(tmp_path: Path, setting: str) -> None:
    """JOBS_OUTBOX_LIMIT is a number of jobs."""
    settings = embedded(tmp_path) | {"JOBS_OUTBOX_LIMIT": setting}
    assert "expected JOBS_OUTBOX_LIMIT to be a whole number" in fail(2, "queues", settings=settings)


def test_it_forgets_old_keys(deployment: Deployment) -> None:
    """With a watermark that was raised long enough ago it deletes what is before that, and says so."""
    store = Store(deployment.database_url)
    with store.writing() as connection:
        connection.execute(
            text(
                "INSERT INTO job_ledger (key, args_hash, actor, message_id, created_at) "
                "SELECT 'k' || n, '', 'act', 'm', now() - n * interval '50 days' FROM generate_series(1, 4) n"
            )
        )
        connection.execute(
            text(
                "INSERT INTO job_watermark (id, watermark, raised_at) "
                "VALUES (1, now() - interval '120 days', now() - interval '2 hours')"
            )
        )
    maintenance = deployment.maintain()
    wait_until(lambda: "prune.ended" in maintenance.text(), what="the end of the pruning")
    assert "keys=2" in maintenance.text()
    with store.engine.connect() as connection:
        left = connection.execute(text("SELECT key FROM job_ledger ORDER BY key")).scalars().all()
    assert left == ["k1", "k2"]
    store.dispose()
