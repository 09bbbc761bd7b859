"""What does a test do to services that belong to this run alone? Alarms, limits, restarts."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent
_SECONDS: Final = 60
# Both of RabbitMQ 3.10; on 4.x they are 0.6 and 16 MiB, but any value far above what tests use will do.
_DEFAULT_WATERMARK: Final = "0.4"
_DEFAULT_MESSAGE_SIZE: Final = 134217728


class Control:
    """Runs the command that controls the services.

    Parameters:
        command: as JOBS_TEST_CTL holds it.
    """

    def __init__(self, command: str) -> None:
        self._command = shlex.split(command)

    def run(self, *arguments: str) -> str:
        """Run a command of the services, such as `restart rabbitmq`, and return what it prints."""
        command = [*self._command, *arguments]
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_SECONDS)
        assert done.returncode == 0, f"{shlex.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def rabbitmqctl(self, *arguments: str) -> str:
        """Run `rabbitmqctl` on the broker and return what it prints."""
        return self.run("rabbitmqctl", *arguments)

    def count_often(self) -> None:
        """Have queues that are declared from now on tell their counts twice a second instead of every 5 s."""
        self.rabbitmqctl("eval", "application:set_env(rabbit, quorum_tick_interval, 500).")

    @contextmanager
    def memory_alarm(self) -> Iterator[None]:
        """Raise a memory alarm, which blocks every connection that publishes."""
        try:
            self.rabbitmqctl("set_vm_memory_high_watermark", "absolute", "1")
            yield
        finally:
            self.rabbitmqctl("set_vm_memory_high_watermark", _DEFAULT_WATERMARK)

    @contextmanager
    def max_message_size(self, size: int) -> Iterator[None]:
        """Have the broker refuse larger bodies; channels that are open keep the limit they began with."""
        try:
            self._set_max_message_size(size)
            yield
        finally:
            self._set_max_message_size(_DEFAULT_MESSAGE_SIZE)

    def _set_max_message_size(self, size: int) -> None:
        # Where RabbitMQ 3.10 and 4.x read it, see `middleware/transport/versions.py`.
        self.rabbitmqctl(
            "eval",
            f"application:set_env(rabbit, max_message_size, {size}), "
            f"persistent_term:put(max_message_size, {size}).",
        )

    @contextmanager
    def dead_letter_retry(self, pause: timedelta) -> Iterator[None]:
        """Have queues declared from now on repeat a refused dead-lettering after `pause`."""
        name = "dead_letter_worker_publisher_confirm_timeout"
        found = self.rabbitmqctl("eval", f"application:get_env(rabbit, {name}).")
        before = int("".join(filter(str.isdigit, found)))
        try:
            self.rabbitmqctl(
                "eval", f"application:set_env(rabbit, {name}, {pause // timedelta(milliseconds=1)})."
            )
            yield
        finally:
            self.rabbitmqctl("eval", f"application:set_env(rabbit, {name}, {before}).")
