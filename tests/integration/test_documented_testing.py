"""Do the files that the kit's README shows work as they stand there, in a project of their own?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each runs an actor dozens of times

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "middleware" / "testing" / "README.md"


def write_documented(folder: Path) -> None:
    """Write the blocks that begin with a file's name."""
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", README.read_text(), re.DOTALL):
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project that imports this repository's packages."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_documented_tests_pass(tmp_path: Path) -> None:
    """Written into an empty folder, they need nothing else."""
    write_documented(tmp_path)
    ended = run_pytest(tmp_path)
    assert (ended.returncode, "4 passed" in ended.stdout) == (0, True), ended.stdout + ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tests"]


ACTOR = """
import uuid
import dramatiq
from jobs import store

@dramatiq.actor(queue_name="critical", idempotent="it is not")
def careless(task_id: str, message_id: str) -> None:
    with store.engine.begin() as connection:
        connection.execute(insert(CreditEntry).values(reference=uuid.uuid4().hex, account_id="a", amount=2))

"""


def test_an_actor_without_a_key_fails_it(tmp_path: Path) -> None:
    """The same test of another actor names the points, as README shows."""
    write_documented(tmp_path)
    test = tmp_path / "tests" / "test_credit.py"
    text = test.read_text().replace("from jobs import charge_credit\n", "")
    test.write_text(text.replace("def a_usage", f"{ACTOR}def a_usage").replace("charge_credit,", "careless,"))
    ended = run_pytest(tmp_path)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "after a crash after COMMIT, before the acknowledgement: effect took place 2 times" in ended.stdout
