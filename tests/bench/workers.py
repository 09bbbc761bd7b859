"""How does a benchmark run real workers? Started, fed past every client, asked for their report, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pika

T = TypeVar("T")

_INTERVAL_SECONDS: Final = 0.1
_STOP_SECONDS: Final = 60.0
_pause: Final = threading.Event()


def environment(broker_url: str, database_url: str, folder: Path, **more: object) -> dict[str, str]:
    """Return the variables of a worker: of the kit's settings only these, so that no `.env` changes a figure.

    Parameters:
        broker_url: becomes JOBS_BROKER_URL.
        database_url: becomes JOBS_DATABASE_URL.
        folder: where the worker writes its `log` and its `report`, which it finds in BENCH_REPORT.
        more: further variables.
    """
    foreign = ("JOBS_", "BENCH_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **inherited,
        "JOBS_BROKER_URL": broker_url,
        "JOBS_DATABASE_URL": database_url,
        "JOBS_ENV_FILE": "",
        "BENCH_REPORT": str(folder / "report"),
        **{name: str(value) for name, value in more.items()},
    }


def migrate(variables: Mapping[str, str]) -> None:
    """Create the tables in the database that these variables name."""
    command = [sys.executable, "-m", "middleware.cli", "migrate"]
    subprocess.run(command, env=variables, check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True)
class Worker:
    """A running `dramatiq` command.

    Attributes:
        process: Dramatiq's master; `pid()` is its one worker process.
        report: the file in which the worker writes what it measured.
        log: what it printed.
    """

    process: subprocess.Popen[bytes]
    report: Path
    log: Path

    def wait_until(self, fact: Callable[[], T | None], *, what: str, seconds: float = 120.0) -> T:
        """Poll until `fact` returns something true, and return that.

        Raises:
            RuntimeError: it did not in time, or the worker ended; shows the end of its log.
        """
        give_up = time.monotonic() + seconds
        while True:
            found = fact()
            if found:
                return found
            if self.process.poll() is not None:
                raise RuntimeError(f"expected {what}, but the worker ended: {self._end_of_log()}")
            if time.monotonic() > give_up:
                raise RuntimeError(f"expected {what} within {seconds:g} s: {self._end_of_log()}")
            _pause.wait(_INTERVAL_SECONDS)

    def wait_for_consumers(self, broker_url: str, queues: Iterable[str]) -> None:
        """Return when each queue has a consumer."""
        for queue in queues:
            self.wait_until(partial(consumers, broker_url, queue), what=f"a consumer of {queue!r}")

    def wait_for_report(self, seconds: float = 120.0) -> str:
        """Return what the worker wrote when it had measured."""
        return self.wait_until(lambda: _text(self.report), what="the jobs to end", seconds=seconds)

    def pid(self) -> int:
        """Return the id of the process that runs the jobs."""
        return self.wait_until(lambda: _child(self.process.pid), what="a worker process")

    def stop(self) -> None:
        """End it as systemd would; does nothing to one that ended by itself."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"the worker did not stop: {self._end_of_log()}") from None

    def _end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


@contextmanager
def running(
    module: str, queues: Sequence[str], variables: Mapping[str, str], *, threads: int = 8
) -> Iterator[Worker]:
    """Run `dramatiq MODULE` with one process while the block runs.

    Parameters:
        module: declares the actors.
        queues: what it consumes.
        variables: see `environment`.
        threads: worker threads. Defaults to 8.
    """
    report = Path(variables["BENCH_REPORT"])
    log = report.with_name("log")
    command = [sys.executable, "-m", "dramatiq", module, "--processes", "1", "--threads", str(threads)]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, "--queues", *queues], env=variables, stdout=output, stderr=output
        )
    worker = Worker(process, report, log)
    try:
        yield worker
    finally:
        worker.stop()


def declared(module: str, queues: Sequence[str], broker_url: str, variables: Mapping[str, str]) -> None:
    """Have a worker declare its queues, each in its own way, and leave them empty."""
    with running(module, queues, variables) as worker:
        worker.wait_for_consumers(broker_url, queues)


def write_report(text: str) -> None:
    """Hand in, from within a worker, what was measured: all at once, for the reader takes what is there."""
    report = Path(os.environ["BENCH_REPORT"])
    draft = report.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(report)


def fill(broker_url: str, queue: str, bodies: Iterable[bytes], *, seconds: float = 300.0) -> None:
    """Publish persistent messages past every client, so that all contestants meet the same queue.

    Parameters:
        broker_url: with the virtual host.
        queue: exists, and nobody consumes it.
        bodies: one a message.
        seconds: how long the broker may take to show all of them. Defaults to 5 minutes.

    Raises:
        RuntimeError: they are not all there in time.
    """
    expected = waiting(broker_url, queue)
    with pika.BlockingConnection(pika.URLParameters(broker_url)) as connection:
        channel = connection.channel()
        properties = pika.BasicProperties(delivery_mode=2)
        for body in bodies:
            channel.basic_publish("", queue, body, properties)
            expected += 1
    give_up = time.monotonic() + seconds
    while (found := waiting(broker_url, queue)) != expected:
        if time.monotonic() > give_up:
            raise RuntimeError(f"expected {queue!r} to hold {expected:,} messages, got: {found:,}")
        _pause.wait(_INTERVAL_SECONDS)


def waiting(broker_url: str, queue: str) -> int:
    """Return how many messages wait in a queue, 0 if there is none."""
    return _counts(broker_url, queue)[0]


def consumers(broker_url: str, queue: str) -> int:
    """Return how many consumers a queue has, 0 if there is none."""
    return _counts(broker_url, queue)[1]


def _counts(broker_url: str, queue: str) -> tuple[int, int]:
    with pika.BlockingConnection(pika.URLParameters(broker_url)) as connection:
        try:
            answer = connection.channel().queue_declare(queue, passive=True).method
        except pika.exceptions.ChannelClosedByBroker:
            return 0, 0
        return answer.message_count, answer.consumer_count


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _child(pid: int) -> int | None:
    """Return the process's child that is a copy of it: Dramatiq forks its workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else None
