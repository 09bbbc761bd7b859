"""A store that a process has used serves its forked children, too: their connections are their own."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, sys
from middleware.store import Store
from sqlalchemy import text

store = Store(sys.argv[1])

def connected() -> int:
    with store.engine.connect() as connection:
        return connection.execute(text("SELECT pg_backend_pid()")).scalar_one()

before = connected()
child = os.fork()
if child == 0:
    os._exit(0 if connected() != before else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert connected() == before
store.dispose()
"""


def test_a_forked_child_connects_anew(postgresql_url: str) -> None:
    """The child opens its own connection, and the parent's works on after the child has ended."""
    command = [sys.executable, "-W", "error", "-c", PROGRAM, postgresql_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
