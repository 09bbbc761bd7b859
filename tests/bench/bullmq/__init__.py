"""BullMQ: one Node.js process at concurrency 8 on a Redis server of its own.

With `appendfsync always` Redis answers when a change is on disk, as a quorum queue confirms. `everysec`, what
most installations have, may lose a second of changes in a crash: it is there to be seen, no target names it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.bench.bullmq.redis import redis
from tests.bench.pace import WARM_UP_SHARE
from tests.bench.processes import GIVE_UP_SECONDS

_FOLDER: Final = Path(__file__).parent
PACKAGE: Final = _FOLDER / "node_modules/bullmq/package.json"
# On a disk, as the broker's data are: /tmp is memory on some systems.
_ON_DISK: Final = "/var/tmp"


def missing() -> str:
    """Say what has to be installed; empty if nothing."""
    if shutil.which("node") is None:
        return "no Node.js; install it (Debian: apt-get install nodejs npm) and run `make bench` again"
    if shutil.which("redis-server") is None:
        return "no redis-server; install it (Debian: apt-get install redis-server)"
    if not PACKAGE.exists():
        return "its packages are not there; run `make bench` again, it needs npm and the npm registry"
    return ""


def rate(jobs: int, fsync: str) -> float:
    """Return no-op jobs/s.

    Parameters:
        jobs: how many wait before the worker starts.
        fsync: Redis' `appendfsync`.
    """
    with tempfile.TemporaryDirectory(dir=_ON_DISK) as folder, redis(Path(folder), fsync) as port:
        _node("fill.mjs", port, jobs)
        return float(_node("work.mjs", port, jobs, max(1, jobs // WARM_UP_SHARE)).split()[-1])


def _node(script: str, *arguments: int) -> str:
    command = ["node", str(_FOLDER / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{script} ended with exit code {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
