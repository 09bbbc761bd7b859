"""Under which circumstances was a figure measured? Versions, machine and date."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.bench.bullmq import PACKAGE
from tests.bench.services import Services

PACKAGES: Final = (
    *("dramatiq", "pika", "sqlalchemy", "psycopg", "prometheus-client", "structlog"),
    *("celery", "kombu", "amqp"),
)


def circumstances(services: Services) -> dict[str, Any]:
    """Return what a run's record begins with."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "scale": services.scale,
        "machine": machine(),
        "versions": {**_servers(services), **_packages(), **_node()},
    }


def machine() -> dict[str, Any]:
    """Return cores, memory in GiB, processor, system, and how busy it was before."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "processor": _processor(),
        "system": platform.platform(),
        "load_before": os.getloadavg()[0],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _servers(services: Services) -> dict[str, str | None]:
    overview = services.manage("GET", "overview").json()
    with psycopg.connect(services.database_url.replace("+psycopg", "", 1)) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return {
        "rabbitmq": overview["rabbitmq_version"],
        "erlang": overview["erlang_version"],
        "postgresql": row[0] if row else None,
        "redis": _output("redis-server", "--version"),
    }


def _packages() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _node() -> dict[str, str | None]:
    bullmq = json.loads(PACKAGE.read_text())["version"] if PACKAGE.exists() else None
    return {"node": _output("node", "--version"), "bullmq": bullmq}


def _output(*command: str) -> str | None:
    """Return what a program says of itself, None if it is not there."""
    if shutil.which(command[0]) is None:
        return None
    return _words(subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.split())


def _words(words: Sequence[str]) -> str:
    """Return the version in `Redis server v=7.0.15 sha=…`, or the only word that is there."""
    marked = [word.removeprefix("v=") for word in words if word.startswith("v=")]
    return (marked or [" ".join(words)])[0]
