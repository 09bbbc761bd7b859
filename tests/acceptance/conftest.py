"""What every acceptance test starts from: real services, nothing shared with another test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ..rabbit import Rabbit
from .books import Books, RecordUsages
from .deployment import Deployment


@pytest.fixture
def deployment(rabbit: Rabbit, postgresql_url: str, tmp_path: Path) -> Iterator[Deployment]:
    """A virtual host, a database, and workers that end with the test; their logs are shown if it fails."""
    deployment = Deployment(rabbit, postgresql_url, tmp_path)
    yield deployment
    deployment.close()
    logs = [worker.log for worker in deployment.workers] + [each.log for each in deployment.maintenance]
    for log in logs:
        sys.stdout.write(f"--- {log.name}\n{log.read_text(errors='replace')[-8000:]}\n")


@pytest.fixture
def record_usages(deployment: Deployment) -> Iterator[RecordUsages]:
    """Record usages that are to be charged, and keep their books."""
    with ExitStack() as stack:

        def record(usages: int) -> Books:
            books = Books(deployment.database_url, usages)
            stack.callback(books.close)
            return books

        yield record
