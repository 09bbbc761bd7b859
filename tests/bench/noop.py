"""No-op jobs per second of one worker process with 8 threads: the kit against stock Dramatiq."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import dramatiq
import httpx
import pika

_GIVE_UP_SECONDS: Final = 120.0
RIVALS: Final = {"kit": ("tests.bench.kit_noop", "critical"), "stock": ("tests.bench.stock_noop", "stock")}


def measure(which: str, jobs: int, broker_url: str, management_url: str) -> float:
    """Return jobs/s of one run in a virtual host of its own.

    Parameters:
        which: kit or stock.
        jobs: how many no-op jobs wait before the worker starts.
        broker_url: a broker on this machine.
        management_url: its HTTP API with user and password.
    """
    module, queue = RIVALS[which]
    vhost = f"bench-{which}-{os.getpid()}-{time.monotonic_ns()}"
    url = broker_url.rsplit("/", 1)[0] + "/" + quote(vhost, safe="")
    manage(management_url, "PUT", f"vhosts/{quote(vhost, safe='')}")
    user = quote(urlsplit(broker_url).username or "guest", safe="")
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    manage(management_url, "PUT", f"permissions/{quote(vhost, safe='')}/{user}", rights)
    try:
        return _run(module, queue, jobs, url)
    finally:
        manage(management_url, "DELETE", f"vhosts/{quote(vhost, safe='')}")


def manage(management_url: str, method: str, path: str, body: dict[str, str] | None = None) -> None:
    """Call RabbitMQ's HTTP API."""
    parts = urlsplit(management_url)
    base = f"{parts.scheme}://{parts.hostname}:{parts.port}/api/"
    auth = (parts.username or "guest", parts.password or "guest")
    httpx.request(method, base + path, auth=auth, json=body or {}, timeout=30).raise_for_status()


def _run(module: str, queue: str, jobs: int, url: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "rate")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("JOBS_")},
            "JOBS_BROKER_URL": url,
            "JOBS_DATABASE_URL": f"sqlite:///{folder}/bench.sqlite3",
            "JOBS_ENV_FILE": "",
            "BENCH_JOBS": str(jobs),
            "BENCH_REPORT": str(report),
        }
        migrate = [sys.executable, "-m", "middleware.cli", "migrate"]
        subprocess.run(migrate, env=environment, check=True, stdout=subprocess.DEVNULL)
        command = [
            sys.executable,
            "-m",
            "dramatiq",
            module,
            "--processes",
            "1",
            "--threads",
            "8",
            "--queues",
            queue,
        ]
        first = _worker(command, environment, folder)  # declares the queue, then makes room
        try:
            _wait_for_queue(url, queue, first, Path(folder, "log"))
        finally:
            _stop(first)
        _fill(url, queue, jobs)
        worker = _worker(command, environment, folder)
        try:
            return _wait_for_rate(report, worker, Path(folder, "log"))
        finally:
            _stop(worker)


def _worker(command: list[str], environment: dict[str, str], folder: str) -> subprocess.Popen[bytes]:
    with Path(folder, "log").open("ab") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def _stop(worker: subprocess.Popen[bytes]) -> None:
    worker.send_signal(signal.SIGTERM)
    worker.wait(timeout=60)


def _wait_for_queue(url: str, queue: str, worker: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < give_up and worker.poll() is None:
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            try:
                answer = connection.channel().queue_declare(queue, passive=True)
                if answer.method.consumer_count:
                    return
            except pika.exceptions.ChannelClosedByBroker:
                pass
        threading.Event().wait(0.2)
    raise RuntimeError(f"the worker did not consume {queue!r}: {log.read_text(errors='replace')[-2000:]}")


def _fill(url: str, queue: str, jobs: int) -> None:
    """Fill the queue with the same messages for both, past both clients."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        properties = pika.BasicProperties(delivery_mode=2)
        for _ in range(jobs):
            message: dramatiq.Message[None] = dramatiq.Message(
                queue_name=queue, actor_name="bench_noop", args=(), kwargs={}, options={}
            )
            channel.basic_publish("", queue, message.encode(), properties)
    give_up = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < give_up:
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            if connection.channel().queue_declare(queue, passive=True).method.message_count == jobs:
                return
        threading.Event().wait(0.2)
    raise RuntimeError(f"{queue!r} did not fill in time")


def _wait_for_rate(report: Path, worker: subprocess.Popen[bytes], log: Path) -> float:
    give_up = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < give_up:
        if report.exists() and report.read_text():
            return float(report.read_text())
        if worker.poll() is not None:
            raise RuntimeError(f"the worker ended: {log.read_text(errors='replace')[-2000:]}")
        threading.Event().wait(0.2)
    raise RuntimeError("the jobs did not end in time")
