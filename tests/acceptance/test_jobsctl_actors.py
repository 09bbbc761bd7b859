"""Does `jobsctl` show actors whole, and find those of a module of one's own?"""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import charge_credit, index_resource, send_email, summarize_chat

from .commands import embedded, fail, succeed

pytestmark = pytest.mark.slow  # a process for each command

ACTORS = (charge_credit, index_resource, send_email, summarize_chat)
MODULE = """\
import dramatiq
{first_line}

@dramatiq.actor(queue_name="indexing", max_retries=0)
def greet(name: str) -> None:
    print(f"hello {{name}}", flush=True)
"""


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_nothing_is_cut_off(tmp_path: Path, columns: int) -> None:
    """In a window of any width, every name, queue and key is there to its last letter."""
    text = succeed("actors", settings=embedded(tmp_path) | {"COLUMNS": str(columns)})
    assert "…" not in text
    letters = "".join(text.split())
    for actor in ACTORS:
        for part in (actor.actor_name, actor.queue_name, actor.options["idempotency_key"]):
            assert part in letters or is_folded(part, text), part


def is_folded(part: str, text: str) -> bool:
    """Whether a column of the table holds a text, from the top to the bottom, in pieces."""
    heading = next(line for line in text.splitlines() if line.strip())
    starts = [place for place, letter in enumerate(heading) if letter != " " and heading[place - 1] == " "]
    columns = ["".join(line[start:].split("  ")[0].strip() for line in text.splitlines()) for start in starts]
    return any(part in column for column in columns)


def application(folder: Path, first_line: str) -> dict[str, str]:
    """Write a module of one's own and return the settings that make it the application."""
    (folder / "my_actors.py").write_text(MODULE.format(first_line=first_line))
    return embedded(folder) | {"JOBS_APP": "my_actors", "PYTHONPATH": str(folder)}


def test_a_module_of_ones_own_can_be_sent_to(tmp_path: Path) -> None:
    """With JOBS_APP, a module that begins as documented is an application: its actors are found and run."""
    settings = application(tmp_path, "from jobs import seed, store")
    succeed("migrate", settings=settings)
    assert "greet" in succeed("actors", settings=settings)
    assert "hello Ada" in succeed("send", "greet", "Ada", settings=settings)


def test_without_it_the_error_says_what_to_set(tmp_path: Path) -> None:
    """An actor that is not found leads to JOBS_APP, a module that lacks what that needs to its first line."""
    settings = application(tmp_path, "import jobs")
    unset = {name: value for name, value in settings.items() if name != "JOBS_APP"}
    assert "`JOBS_APP=my_actors jobsctl send …`" in fail(2, "send", "greet", "Ada", settings=unset)
    assert "begins with `from jobs import seed, store`" in fail(2, "send", "greet", "Ada", settings=settings)
