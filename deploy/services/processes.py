"""Is the process that we started still the one that has its number, and how is it ended?"""

import contextlib
import os
import pwd
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.services.errors import CannotServe

OPEN_FILES: Final = 65536  # a quorum queue holds a few files; a ladder has dozens of queues
STOP_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Process:
    """One process and nothing that gets its number later: after its end, or after a reboot."""

    pid: int
    started: int  # clock ticks after boot, field 22 of /proc/PID/stat
    boot: str

    def is_alive(self) -> bool:
        """Whether exactly this process runs; one that ended and was not yet collected does not."""
        return self.boot == boot_id() and _started(self.pid) == self.started


def boot_id() -> str:
    """Differs from one boot of the machine to the next."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Process | None:
    """The process that has this number now; None if there is none."""
    started = _started(pid)
    return None if started is None else Process(pid, started, boot_id())


def _started(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field, the program's name, is in parentheses and may itself hold spaces and parentheses.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])


def spawn(
    argv: Sequence[str | Path], *, user: str, folder: Path, environment: Mapping[str, str], log: Path
) -> Process:
    """Start a service that outlives this command: as `user`, in `folder`, in a session of its own.

    Ctrl-C does not reach it. Output is appended to `log`.
    """
    allow_open_files()
    account = pwd.getpwnam(user)
    with log.open("ab") as output:
        started = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
        )
    process = identify(started.pid)
    if process is None:
        raise CannotServe(f"{Path(argv[0]).name} ended at once; {tail(log)}")
    return process


def allow_open_files() -> None:
    """Raise this process's own limit, which what it starts inherits; as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < OPEN_FILES:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, max(hard, OPEN_FILES)))


def end(process: Process, first: signal.Signals, seconds: float = STOP_SECONDS) -> None:
    """Send `first` and wait up to `seconds` for the end, then send SIGKILL; does nothing to another process.

    Raises `CannotServe` if even that does not end it.
    """
    for number, wait in ((first, seconds), (signal.SIGKILL, STOP_SECONDS)):
        if not process.is_alive():
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
        deadline = time.monotonic() + wait
        while process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
    if process.is_alive():
        raise CannotServe(f"expected process {process.pid} to end after SIGKILL, got: still running")


def working_in(folder: Path) -> list[int]:
    """The numbers of the live processes whose working directory this is."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or was not collected
            if link.readlink() == folder:
                found.append(int(link.parent.name))
    return found


def tail(log: Path, lines: int = 20) -> str:
    """The end of a log, to show with a failure."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return f"no log at {log}"
    return "\n".join([f"the end of {log}:", *text.splitlines()[-lines:]])
