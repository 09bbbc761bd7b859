"""Does `jobsctl check` load what it can, read the rest, and say it in words, as JSON and by its exit code?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .commands import fail, jobsctl, succeed

pytestmark = pytest.mark.slow  # a process for each command

GOOD = """
import jobs
import dramatiq
from middleware import current_session


@dramatiq.actor(queue_name="critical", idempotency_key="shop:{order_id}")
def order(order_id: str) -> None:
    current_session().flush()
"""
SWALLOWING = """
    try:
        print(order_id)
    except:
        pass
"""


class Shop:
    """An application in a folder of its own, checked from the repository's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = {
            "JOBS_BROKER_URL": "inline://",
            "JOBS_DATABASE_URL": f"sqlite:///{folder}/jobs.sqlite3",
            "JOBS_APP": "shop",
            "PYTHONPATH": str(folder),
        }

    def write(self, name: str, text: str) -> Path:
        """Write a file."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    def check(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code and what `--json` says."""
        done = jobsctl("check", "--json", *words, settings=self.settings)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done.returncode, json.loads(done.stdout)

    def found(self, *words: str) -> list[tuple[str, str | None, int | None]]:
        """Return code, file name and line of each finding."""
        _, answer = self.check(*words)
        return [
            (each["code"], each["file"] and Path(each["file"]).name, each["line"])
            for each in answer["findings"]
        ]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """An application without a finding."""
    shop = Shop(tmp_path)
    shop.write("shop.py", GOOD)
    return shop


def test_the_shipped_application(tmp_path: Path) -> None:
    """No finding, exit code 0, and it says how much was read."""
    settings = {"JOBS_BROKER_URL": "inline://", "JOBS_DATABASE_URL": f"sqlite:///{tmp_path}/none.sqlite3"}
    assert succeed("check", settings=settings).startswith("no findings in ")
    assert not (tmp_path / "none.sqlite3").exists()


def test_an_error_is_told_with_place_reason_and_fix(shop: Shop) -> None:
    """One line where and why, one line what to do; exit code 1."""
    file = shop.write("shop.py", GOOD + SWALLOWING)
    done = jobsctl("check", settings=shop.settings)
    assert done.returncode == 1
    first, second, last = done.stdout.splitlines()
    assert first.startswith(f"{file}:13: JOB106 error: actor 'order': ")
    assert second.startswith("    fix: name the exceptions")
    assert last.startswith("1 error, 0 hints in ")


def test_json_has_every_field(shop: Shop) -> None:
    """As README lists them."""
    shop.write("shop.py", GOOD + SWALLOWING)
    code, answer = shop.check()
    assert (code, set(answer)) == (1, {"errors", "hints", "files", "findings"})
    assert (answer["errors"], answer["hints"]) == (1, 0)
    assert set(answer["findings"][0]) == {"code", "level", "file", "line", "why", "fix"}


def test_hints_leave_the_exit_code_alone(shop: Shop) -> None:
    """A hint may be wrong, and says so."""
    shop.write("shop.py", GOOD.replace("order_id: str", "order_id: str, tenant_id: str"))
    assert "JOB201 hint, may be wrong: " in succeed("check", settings=shop.settings)


def test_the_loaded_application_fills_what_the_source_hides(shop: Shop) -> None:
    """Options from a function are those with which the actor was declared."""
    shop.write(
        "shop.py",
        "import jobs\nimport dramatiq\nfrom sqlalchemy import insert\n"
        "def options(): return dict(zip(['queue_name'], ['critical']))\n"
        "@dramatiq.actor(**options())\n"
        "def order(order_id: str):\n    print(None).execute(insert(None))\n",
    )
    assert shop.found() == [("JOB108", "shop.py", 5)]


def test_a_declaration_that_is_refused_is_told_once(shop: Shop) -> None:
    """The application cannot be loaded, and the finding says why."""
    shop.write("shop.py", GOOD.replace("{order_id}", "{oder}"))
    assert shop.found() == [("JOB101", "shop.py", 7)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import no_such_thing", "ModuleNotFoundError"),
        ("exit(3)", "SystemExit: 3"),
    ],
)
def test_an_application_that_cannot_be_loaded_is_read(shop: Shop, line: str, why: str) -> None:
    """The failure is a finding at its line, beside what the source shows."""
    shop.write("shop.py", f"{GOOD}{SWALLOWING}\n{line}\n")
    assert shop.found() == [("JOB106", "shop.py", 13), ("JOB003", "shop.py", 16)]
    assert why in shop.check()[1]["findings"][1]["why"]


def test_a_syntax_error_is_one_finding(shop: Shop) -> None:
    """It is why the application cannot be loaded, too."""
    shop.write("shop.py", "def broken(:\n")
    assert shop.found() == [("JOB001", "shop.py", 1)]


def test_an_application_without_a_broker_of_the_kit(shop: Shop) -> None:
    """Its actors would not be the kit's."""
    shop.write("shop.py", "x = 1\n")
    assert shop.found() == [("JOB003", "shop.py", None)]


def test_a_wrong_setting_is_a_finding(shop: Shop) -> None:
    """It keeps the application from being loaded."""
    shop.settings["JOBS_MAX_RETRIES"] = "many"
    assert [each[0] for each in shop.found()] == ["JOB003"]


def test_further_paths_are_read_for_who_sends(shop: Shop) -> None:
    """Files and folders beside the application."""
    file = shop.write("web/views.py", "import uuid\nfrom shop import order\norder.send(uuid.uuid4().hex)\n")
    assert shop.found() == []
    assert shop.found(str(file)) == shop.found(str(file.parent)) == [("JOB107", "views.py", 3)]


def test_no_such_application_or_path(shop: Shop) -> None:
    """Exit code 2, as for whatever is typed wrongly."""
    fail(2, "check", str(shop.folder / "nowhere"), settings=shop.settings)
    shop.settings["JOBS_APP"] = "no_such_shop"
    assert "no_such_shop" in fail(2, "check", settings=shop.settings)


def test_threads_count_for_what_is_held(shop: Shop) -> None:
    """With one thread, the prefetched jobs stand in one line."""
    queue = "from middleware import Queue\nfrom datetime import timedelta\n"
    shop.write("more.py", f"{queue}Queue(name='a', prefetch=16, time_limit=timedelta(minutes=10))\n")
    assert shop.found(str(shop.folder / "more.py")) == []
    assert ("JOB110", "more.py", 3) in shop.found(str(shop.folder / "more.py"), "--threads", "4")


def test_live_asks_the_database(shop: Shop) -> None:
    """A file that is not there is told, and not made."""
    assert [each[0] for each in shop.found("--live")] == ["JOB307", "JOB307"]
    shop.write("shop.py", f"from jobs import store\n{GOOD}")
    assert [each[0] for each in shop.found("--live")] == ["JOB307", "JOB305"]
    assert not (shop.folder / "jobs.sqlite3").exists()
