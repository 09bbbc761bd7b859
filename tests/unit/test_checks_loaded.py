"""What does a loaded application add to what its source shows? This file is both."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import dramatiq
import pytest

from middleware import Failures, InlineBroker, Ledger, Queue, Retention, Store, TimeLimits
from middleware.checks import check_sources
from middleware.transport.patience import Patience

HERE = Path(__file__)
Ids: TypeAlias = dict[str, str]


def build_broker(
    folder: Path,
    *queues: Queue,
    lease: timedelta = timedelta(seconds=30),
    retention: timedelta = timedelta(days=120),
) -> InlineBroker:
    """Return a broker that takes every option."""
    store = Store(f"sqlite:///{folder}/none.sqlite3")
    ledger = Ledger(store, lease=lease, retention=Retention(retention))
    declared = queues or (Queue(name="jobs", time_limit=timedelta(seconds=20)),)
    return InlineBroker(queues=declared, middleware=[TimeLimits(), ledger, Failures()])


def hidden(**options: Any) -> dict[str, Any]:
    """Return options in a way that no source shows."""
    return dict(sorted(options.items()))


def found(broker: InlineBroker) -> list[tuple[str, str]]:
    """Return code and reason of each error that the loaded actors have."""
    findings = check_sources([HERE], broker=broker).findings
    return [(each.code, each.why) for each in findings if "'loaded_" in each.why]


@pytest.mark.parametrize(("lease", "codes"), [(30, []), (45, []), (46, ["JOB112"])])
def test_a_lease_is_compared_with_time_limit_and_grace(tmp_path: Path, lease: int, codes: list[str]) -> None:
    """20 s of the queue and 25 s of grace are the longest that a job may run."""
    broker = build_broker(tmp_path, lease=timedelta(seconds=lease))

    @dramatiq.actor(broker=broker, queue_name="jobs", idempotency_key="a:{one}", effect="external")
    def loaded_external(one: str) -> None: ...

    @dramatiq.actor(broker=broker, queue_name="jobs", idempotency_key="b:{one}")
    def loaded_plain(one: str) -> None: ...

    assert [code for code, _ in found(broker)] == codes


def test_what_the_ledger_remembers_is_compared_with_how_late_a_job_may_come(tmp_path: Path) -> None:
    """The sum that stops a worker is found before, once there is an actor with a key."""
    brief = build_broker(tmp_path, retention=timedelta(days=60))
    assert [each.code for each in check_sources([HERE], broker=brief).findings if not each.file] == []

    @dramatiq.actor(broker=brief, queue_name="jobs", idempotency_key="a:{one}")
    def loaded_keyed(one: str) -> None: ...

    (finding,) = [each for each in check_sources([HERE], broker=brief).findings if not each.file]
    assert finding.code == "JOB113"
    assert finding.why.startswith("expected JOBS_LEDGER_RETENTION to be at least 61d")
    assert "actor 'loaded_keyed'" in finding.why
    assert finding.why.endswith("got: 60d")


def test_hidden_options_are_those_of_the_declaration(tmp_path: Path) -> None:
    """Snapshots that the source does not show are known once the actor is loaded."""
    broker = build_broker(tmp_path)

    @dramatiq.actor(broker=broker, **hidden(queue_name="jobs", snapshots=("first",)))
    def loaded_hidden(first: dict[str, str], second: dict[str, str]) -> None: ...

    assert [(code, "second is a dict" in why) for code, why in found(broker)] == [("JOB103", True)]
    assert found(build_broker(tmp_path)) == []


def test_an_actor_declared_in_no_way_that_the_source_shows(tmp_path: Path) -> None:
    """The loaded application tells of it, and its annotations are known."""
    broker = build_broker(tmp_path)
    declare: Callable[..., Any] = {"by": dramatiq.actor}["by"]

    @declare(broker=broker, queue_name="jobs")  # type: ignore[untyped-decorator]  # that is the point
    def loaded_unseen(ids: Ids) -> None: ...

    assert [code for code, _ in found(broker)] == ["JOB103"]


def test_files_side_by_side_may_be_programs_of_their_own(tmp_path: Path) -> None:
    """They share neither keys nor queues, as far as that can be told; the modules of a package do."""
    text = (
        "import dramatiq\nfrom datetime import timedelta\nfrom middleware import Queue\n"
        "Queue(name='jobs', time_limit=timedelta(seconds={}))\n"
        "@dramatiq.actor(queue_name='jobs', idempotency_key='a:{{one}}', time_limit=20_000)\n"
        "def act_{}(one: str) -> None: ...\n"
    )
    for seconds in (20, 30):
        (tmp_path / f"program_{seconds}.py").write_text(text.format(seconds, seconds))
    assert check_sources([tmp_path]).findings == []
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "__init__.py").write_text(text.format(20, "of_the_package"))
    assert check_sources([tmp_path]).findings == []
    (tmp_path / "program_20.py").write_text(f"import shop\n{text.format(20, 20)}")
    assert [(each.code, each.line) for each in check_sources([tmp_path]).findings] == [("JOB102", 6)]
    (tmp_path / "__init__.py").touch()
    assert [each.code for each in check_sources([tmp_path]).findings] == ["JOB102", "JOB102"]


@pytest.mark.parametrize(("timeout", "codes"), [(60, []), (15, ["JOB207"])])
def test_queues_that_do_not_go_together(tmp_path: Path, timeout: int, codes: list[str]) -> None:
    """Each alone is held for 10 min and a little, both for 20: a hint where that is too long."""
    each = timedelta(minutes=10)
    broker = build_broker(
        tmp_path,
        Queue(name="a", prefetch=8, time_limit=each),
        Queue(name="b", prefetch=4, time_limit=each),
    )
    patience = Patience(consumer_timeout=timedelta(minutes=timeout))
    findings = check_sources([], broker=broker, patience=patience).findings
    assert [each.code for each in findings] == codes
