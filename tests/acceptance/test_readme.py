"""Do README's commands work, one after the other, in a fresh copy of the repository?"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# Two instances of every service, an environment built anew, and the demonstration.
pytestmark = [pytest.mark.owned_services, pytest.mark.timeout(300)]


def commands() -> list[str]:
    """README's console commands, in order."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A copy of what is under version control, whose services are removed afterwards."""
    folder = tmp_path / "clone"
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():  # not one that is deleted and not committed yet
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    yield folder
    subprocess.run(["make", "services-clean"], cwd=folder, env=environment(), check=True, capture_output=True)
    assert not (folder / ".env").exists()  # it held nothing but the addresses of what is gone


def environment() -> dict[str, str]:
    """A person's environment, without what this test run was given."""
    hidden = ("JOBS_", "PYTHON", "VIRTUAL_ENV", "MAKE", "MFLAGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


# The worker is given time to work, and is ended by its number: `kill %1` needs an interactive shell.
SCRIPT = """\
set -eu
{commands}
for _ in $(seq 100); do
    jobsctl queues --json > queues.json
    python -c '
import sys
import sqlalchemy as sa
from jobs import store
with store.engine.connect() as c:
    rows = c.execute(sa.text("SELECT reference, amount FROM credit_entries")).all()
    rows += c.execute(sa.text("SELECT chat_id, up_to FROM chat_summaries")).all()
    rows += c.execute(sa.text("SELECT resource_id, version FROM resource_index")).all()
print(*rows)
sys.exit(len(rows) < 3)' && break
    sleep 0.2
done
kill $!
wait $! || true
make services-stop
"""


def test_readme_commands_lead_from_a_clone_to_jobs_on_three_queues(clone: Path) -> None:
    """Every command of README but `make test` works as written, and the jobs that it sends do their work."""
    script = SCRIPT.format(commands="\n".join(commands()))
    done = subprocess.run(
        ["bash", "-c", script], cwd=clone, env=environment(), text=True, capture_output=True, timeout=280
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "The books balance." in done.stdout
    assert "('t1:m1', 2) ('chat-1', 2) ('resource-1', 1)" in done.stdout


def test_readme_shows_the_commands_it_should() -> None:
    """README leads through the demonstration and the way to a charged account."""
    assert commands()[0] == "make demo"
    assert "jobsctl send charge_credit t1 m1" in commands()
    assert "make test" not in commands()
