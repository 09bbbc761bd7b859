"""Does `jobsctl queues` count what is there, and say so where it cannot know?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..waiting import wait_until
from .commands import embedded, succeed
from .deployment import Deployment, probe, probes

UNKNOWN = dict.fromkeys(["waiting", "active", "delayed", "failed", "dead"])
"""The counts of a queue that nobody has declared yet."""


def counts(deployment: Deployment, **settings: str) -> dict[str, dict[str, Any]]:
    """Return what `jobsctl queues --json` says, by queue."""
    found = json.loads(succeed("queues", "--json", settings=deployment.environment(**settings)))
    return {count.pop("queue"): count for count in found}


def test_every_state_is_counted(deployment: Deployment) -> None:
    """Waiting, active, delayed and failed jobs are counted where they are; dead is not known."""
    deployment.send(probe("dies", rejections=1))
    deployment.start(threads=1).wait_ready()
    deployment.wait_for_dead_letter()
    deployment.send(probe("runs", gates=["runs"]))
    wait_until(lambda: deployment.seen.count("began", "runs"), what="a job to run")
    deployment.send(*probes(["waits", "waits too"], queue="llm"))
    succeed("send", "summarize_chat", "c", "1", "--delay", "1h", settings=deployment.environment())
    expected = {
        "critical": {"waiting": 0, "active": 1, "delayed": 0, "failed": 1, "dead": None},
        "llm": {"waiting": 2, "active": 0, "delayed": 1, "failed": 0, "dead": None},
        "indexing": UNKNOWN,
    }
    # The management API gathers its numbers every few seconds.
    wait_until(lambda: counts(deployment) == expected, what=f"the counts {expected}", seconds=25)
    deployment.gates.open("runs")


def test_what_is_not_known_is_null(deployment: Deployment) -> None:
    """Without the management API nobody can say how many are active; without queues, nothing is known."""
    assert counts(deployment)["critical"] == UNKNOWN
    deployment.send(probe("waits"))
    found = counts(deployment, JOBS_MANAGEMENT_URL="")["critical"]
    assert found == {"waiting": 1, "active": None, "delayed": 0, "failed": 0, "dead": None}


def test_the_table_is_for_people(deployment: Deployment) -> None:
    """Without --json the same numbers are a table, with a dash for what is not known."""
    deployment.send(probe("waits"))
    lines = succeed("queues", settings=deployment.environment(JOBS_MANAGEMENT_URL="")).splitlines()
    rows = [line.split() for line in lines if line.strip()]
    assert rows[0] == ["queue", "waiting", "active", "delayed", "failed", "dead"]
    assert ["critical", "1", "–", "0", "0", "–"] in rows


def test_each_state_is_explained(tmp_path: Path) -> None:
    """Under the table stands what each state means, failed apart from dead, and what a dash means."""
    text = succeed("queues", settings=embedded(tmp_path))
    explained = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert explained.keys() >= {*UNKNOWN, "–"}
    assert "XQ" in explained["failed"]
    assert "archive" in explained["dead"]
    assert "not known" in explained["–"]
