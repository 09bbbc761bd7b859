"""How fast does PostgreSQL's own benchmark program run the statements of a charge?

`statements.sql` is what the job is about, prepared, which is faster for pgbench than one message with several
statements. `as_sent.sql` has every statement that the kit sends, in its messages: the limits of waiting that
the ledger sets, and its check before the commit, are in it too. Two things differ from the kit:

* pgbench cannot mix protocols: the two statements in the middle, which the kit prepares, are not.
* Values stand in the text as pgbench's variables, without the casts that SQLAlchemy writes.

A unit test compares the wording of both files with what is shipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from sqlalchemy import make_url

from deploy.services import postgresql
from tests.bench.charge_jobs import TASK

PREPARED: Final = ("statements.sql", "prepared")
AS_SENT: Final = ("as_sent.sql", "simple")
INSERT: Final = ("insert.sql", "prepared")
_CLIENTS: Final = 8
_FOLDER: Final = Path(__file__).parent


def missing() -> str:
    """Say what has to be installed; empty if nothing."""
    return "" if _program() else "pgbench, a program of Debian's package postgresql-contrib or postgresql"


def rate(database_url: str, usages: int, script: tuple[str, str]) -> float:
    """Return transactions a second of 8 clients.

    Parameters:
        database_url: has the tables, and usages m1 and on.
        usages: how many are charged, each once; the rest of a division by 8 is not.
        script: PREPARED or AS_SENT.

    Raises:
        RuntimeError: pgbench failed.
    """
    file, protocol = script
    url = make_url(database_url)
    command = [_program() or "pgbench", "--no-vacuum", "--protocol", protocol, "--file", str(_FOLDER / file)]
    command += ["--client", str(_CLIENTS), "--jobs", str(min(_CLIENTS, os.cpu_count() or 1))]
    command += ["--transactions", str(max(1, usages // _CLIENTS)), "--define", f"task={TASK}"]
    command += ["--define", f"head=credit:{TASK}:m", "--define", f"reference={TASK}:m", "--define", "step=-7"]
    command += ["--host", url.host or "", "--port", str(url.port), "--username", url.username or ""]
    password = {"PGPASSWORD": str(url.password)}
    done = subprocess.run(
        [*command, url.database or ""], env=os.environ | password, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"pgbench ended with exit code {done.returncode}: {done.stderr[-1000:]}")
    return transactions_a_second(done.stdout)


def transactions_a_second(output: str) -> float:
    """Read what pgbench prints; the time it takes to connect does not count.

    Raises:
        RuntimeError: no rate, or transactions that failed.
    """
    found = re.search(r"^tps = ([\d.]+) \(without", output, re.MULTILINE)
    failed = re.search(r"^number of failed transactions: (\d+)", output, re.MULTILINE)
    if found is None or (failed is not None and failed[1] != "0"):
        raise RuntimeError(f"expected pgbench to print its rate and no failures, got: {output[-1000:]}")
    return float(found[1])


def _program() -> str | None:
    """Return the newest server's pgbench; Debian puts it beside the server, others into the path."""
    found = postgresql.VERSIONS / str(postgresql.version()) / "bin" / "pgbench"
    return str(found) if found.exists() else shutil.which("pgbench")
