"""Is a usage charged once, wherever the worker dies?"""

from __future__ import annotations

from ..waiting import wait_until
from .books import RecordUsages, charge, charges
from .deployment import Deployment


def test_each_usage_is_charged_once_though_the_worker_is_killed_five_times(
    deployment: Deployment, record_usages: RecordUsages
) -> None:
    """1,000 charges, 300 of them sent twice, outlive five SIGKILLs of the worker; every queue ends empty."""
    books = record_usages(1000)
    deployment.send(*charges(1000, twice=300))
    for kill in range(5):
        worker = deployment.start()
        enough = books.count() + 100
        wait_until(lambda: books.count() >= enough, what=f"charges before SIGKILL {kill + 1}")  # noqa: B023
        worker.kill()
        assert deployment.rabbit.ready("critical") > 0, "expected the worker to be killed while it works"
    deployment.work_off()
    books.check(range(1000))
    assert deployment.waiting() == {}


def test_a_worker_killed_between_commit_and_acknowledgement_charges_once(
    deployment: Deployment, record_usages: RecordUsages
) -> None:
    """A charge whose worker dies after the commit is delivered again, and is recognised as a duplicate."""
    books = record_usages(1)
    deployment.send(charge(0))
    worker = deployment.start(settings={"PROBE_DIES_AFTER_COMMIT": "1"})
    assert worker.wait_ended() != 0
    assert deployment.seen.count("died", "worker") == 1
    books.check([0])
    assert deployment.waiting() == {"critical": 1}, "expected the charge to be committed, not acknowledged"
    deployment.work_off()
    books.check([0])
    assert deployment.waiting() == {}
