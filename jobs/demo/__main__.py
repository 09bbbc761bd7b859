"""`python -m jobs.demo`: prepare a place of its own, run the demonstration there, leave nothing behind.

Provider and mail server answer in this process, the jobs run in a second one: importing `jobs` has read the
settings of whoever calls, and the demonstration has its own.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from .mail_server import serve_mail
from .provider import serve
from .sabotage import NONE, SABOTAGES


def main() -> int:
    """Run the demonstration and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m jobs.demo")
    # For tests: a smaller run, and a run whose books are spoilt before they are checked.
    parser.add_argument("--scale", type=float, default=1.0, help=argparse.SUPPRESS)
    parser.add_argument("--sabotage", choices=SABOTAGES, default=NONE, help=argparse.SUPPRESS)
    options = parser.parse_args()
    # Sent by whoever stops this: leave through the `with` blocks, which clean up.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with (
        tempfile.TemporaryDirectory(prefix="jobs-demo-") as folder,
        serve() as provider,
        serve_mail(journal := Path(folder, "mail.jsonl")) as mail_url,
    ):
        database = Path(folder, "demo.sqlite3")
        extent = [f"--scale={options.scale}", f"--sabotage={options.sabotage}"]
        command = [sys.executable, "-m", "jobs.demo.run", str(database), str(journal), *extent]
        return _call(command, _environment(database, provider.url, mail_url))


def _call(command: list[str], environment: dict[str, str]) -> int:
    with subprocess.Popen(command, env=environment) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:  # a terminal sends it to both; the other one ends by itself
            process.wait()
            return 130
        finally:
            process.terminate()  # nothing if it has ended


def _environment(database: Path, provider_url: str, mail_url: str) -> dict[str, str]:
    """Return this process's environment with the demonstration's settings and no others."""
    foreign = {name: value for name, value in os.environ.items() if not name.startswith("JOBS_")}
    return foreign | {
        "JOBS_ENV_FILE": "",
        "JOBS_BROKER_URL": "inline://",
        "JOBS_DATABASE_URL": f"sqlite:///{database}",
        "JOBS_LLM_URL": provider_url,
        "JOBS_SMTP_URL": mail_url,
        # Short waits: retries are to be seen, not to be waited for.
        "JOBS_MAX_RETRIES": "4",
        "JOBS_MIN_BACKOFF": "100ms",
        "JOBS_MAX_BACKOFF": "2s",
    }


if __name__ == "__main__":
    raise SystemExit(main())
