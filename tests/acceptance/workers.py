"""How does a test run `dramatiq jobs`, look at it from outside, kill it and stop it?"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..waiting import wait_until

ROOT: Final = Path(__file__).resolve().parent.parent.parent
PROBES: Final = "tests.acceptance.probes"

_READY: Final = re.compile(r"\[PID (\d+)\].*Worker process is ready for action\.")
_SHUT_DOWN: Final = "Worker has been shut down."
_START_SECONDS: Final = 40.0
_STOP_SECONDS: Final = 30.0


class Worker:
    """A `dramatiq` command with its worker processes, in a process group of its own.

    Parameters:
        environment: all the command is told; nothing is inherited.
        log: the file that takes its output.
        modules: what it loads. Defaults to the application and the probes.
        queues: what it consumes; empty for all queues. Defaults to `critical`.
        processes: worker processes. Defaults to 1.
        threads: threads of each. Defaults to 4.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        log: Path,
        *,
        modules: Sequence[str] = ("jobs", PROBES),
        queues: Sequence[str] = ("critical",),
        processes: int = 1,
        threads: int = 4,
    ) -> None:
        chosen = ["--queues", *queues] if queues else []
        argv = [*modules, *chosen, "--processes", str(processes), "--threads", str(threads)]
        self.log = log
        self._processes = processes
        with log.open("ab") as output:
            self._command = subprocess.Popen(
                [Path(sys.executable).with_name("dramatiq"), *argv],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait_ready(self) -> Worker:
        """Wait until all its worker processes consume."""
        wait_until(
            lambda: len(self.pids()) == self._processes or self.exit_code is not None,
            what=f"{self._processes} worker processes to be ready",
            seconds=_START_SECONDS,
        )
        assert self.exit_code is None, f"the worker ended with {self.exit_code} instead of becoming ready"
        return self

    def pids(self) -> list[int]:
        """Return the worker processes that reported to be ready."""
        return [int(pid) for pid in _READY.findall(self.text())]

    def text(self) -> str:
        """Return what it has logged."""
        return self.log.read_text(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """The command's exit code, None while it runs."""
        return self._command.poll()

    def memory(self) -> int:
        """Return the resident bytes of its one worker process."""
        (pid,) = self.pids()
        status = Path(f"/proc/{pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) * 1024

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it see nothing for a while."""
        os.killpg(self._command.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._command.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it and its worker processes as a crash of the machine would: all at once, with SIGKILL."""
        if self.exit_code is None:
            os.killpg(self._command.pid, signal.SIGKILL)
        self._command.wait()

    def terminate(self) -> None:
        """Ask it to stop, as a deployment does."""
        self._command.terminate()

    def signal_group(self, number: signal.Signals) -> None:
        """Send the command and its worker processes a signal, all at once, as a shell's `kill %1` does."""
        os.killpg(self._command.pid, number)

    def wait_ended(self, seconds: float = _STOP_SECONDS) -> int:
        """Wait for its end and return the exit code."""
        wait_until(lambda: self.exit_code is not None, what="the worker to end", seconds=seconds)
        return self._command.wait()

    def stop(self) -> None:
        """Stop it, and return when its one worker process has given back what it held."""
        self.terminate()
        wait_until(lambda: _SHUT_DOWN in self.text(), what="the worker to shut down", seconds=_STOP_SECONDS)
        self.kill()  # Dramatiq's command itself takes another second or two
