"""A PostgreSQL server of our own from Debian's packages: how is it set up, started and ended?"""

import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.services import readiness
from deploy.services.endpoints import DATABASE, USER
from deploy.services.errors import CannotServe
from deploy.services.instance import Instance
from deploy.services.processes import STOP_SECONDS, end, spawn, tail, working_in
from deploy.services.state import State

VERSIONS: Final = Path("/usr/lib/postgresql")
ACCOUNT: Final = "postgres"  # the server refuses to run as root
ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def version() -> int | None:
    """The newest installed server's major version; None if there is none."""
    names = [path.parts[-3] for path in VERSIONS.glob("*/bin/postgres")]
    return max((int(name) for name in names if name.isdigit()), default=None)


class PostgreSQL:
    """The server of one instance. It syncs every commit to disk: what the tests prove must hold for real."""

    name = "postgresql"

    def __init__(self, instance: Instance, state: State) -> None:
        self.state = state
        self.folder = instance.folder / self.name
        self.log = self.folder / "postgresql.log"
        self.data = self.folder / "data"

    def program(self, name: str) -> Path:
        """The path of a server program, of the version that made the data; else of the newest installed."""
        made_by = self.data / "PG_VERSION"
        major = made_by.read_text().strip() if made_by.exists() else version()
        return VERSIONS / str(major) / "bin" / name

    def create(self) -> None:
        """Make an empty cluster with our superuser and database; one that was interrupted does not count."""
        draft = self.folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        secret = self.folder / "password"
        secret.write_text(self.state.password)
        shutil.chown(secret, ACCOUNT, ACCOUNT)
        options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", f"--username={USER}"]
        self._run([self.program("initdb"), "-D", draft, f"--pwfile={secret}", *options])
        self._run(
            [self.program("postgres"), "--single", "-D", draft, "postgres"], f"CREATE DATABASE {DATABASE}\n"
        )
        secret.unlink()
        draft.rename(self.data)

    def _run(self, argv: Sequence[str | Path], statement: str = "") -> None:
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=ENVIRONMENT,
            user=ACCOUNT,
            group=ACCOUNT,
            extra_groups=[],
            input=statement,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode != 0:
            raise CannotServe(f"{Path(argv[0]).name} failed: {done.stdout}")

    def begin(self) -> None:
        """Create the cluster if there is none, and start the server if it does not run."""
        if self.state.running(self.name) is not None:
            return
        self.folder.mkdir(exist_ok=True)
        shutil.chown(self.folder, ACCOUNT, ACCOUNT)
        self.folder.chmod(0o700)
        if not self.data.exists():
            self.create()
        self._forget_crashed()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.state.ports.postgresql),
            "unix_socket_directories": ".",  # the data folder; its full path may be too long for one
            "max_connections": "300",
            "max_wal_size": "512MB",
        }
        argv: list[str | Path] = [self.program("postgres"), "-D", self.data]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        self.state.processes[self.name] = spawn(
            argv, user=ACCOUNT, folder=self.folder, environment=ENVIRONMENT, log=self.log
        )

    def _forget_crashed(self) -> None:
        """Remove what a crashed server left, once none of its processes is left.

        The server would by itself, but for a process that ended and that nobody has collected: it takes that
        one for a live server, for as long as a container's first process collects nothing.
        """
        deadline = time.monotonic() + STOP_SECONDS
        while working_in(self.data):
            if time.monotonic() > deadline:
                raise CannotServe(f"expected no process to use {self.data}, got: {working_in(self.data)}")
            time.sleep(0.1)
        for left in (self.data / "postmaster.pid", *self.data.glob(".s.PGSQL.*")):
            left.unlink(missing_ok=True)

    def wait(self) -> None:
        """Return when clients are served; raise `CannotServe` with the log's end when they will not be."""
        readiness.wait_until(
            lambda: readiness.postgresql_answers(self.state.ports.postgresql),
            name="PostgreSQL",
            failed=lambda: tail(self.log) if self.state.running(self.name) is None else None,
        )

    def stop(self, first: signal.Signals = signal.SIGINT) -> None:
        """End the server: connections are cut and changes kept with SIGINT, a crash with SIGKILL."""
        process = self.state.processes.get(self.name)
        if process is not None:
            end(process, first)
            del self.state.processes[self.name]
