"""Where does an instance keep its data and its state, and who may change it now?"""

import contextlib
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.services import lock
from deploy.services.errors import CannotServe

CHANGE_SECONDS: Final = 300.0  # how long one command waits for another that changes the same instance
CLONE: Final = Path(__file__).resolve().parent.parent.parent


def default_home() -> Path:
    """The folder of all instances of all clones on this machine.

    Outside the clone, because the services' own users must reach their data and a clone may lie below a
    folder that is closed to them. Root's is `/var/lib/jobs-kit`.
    """
    if os.geteuid() == 0:
        return Path("/var/lib/jobs-kit")
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state else Path.home() / ".local" / "state") / "jobs-kit"


@dataclass(frozen=True)
class Instance:
    """A named instance ("dev", "test", …) of one clone, told apart from other clones' by the clone's path."""

    name: str
    home: Path
    clone: Path = CLONE

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", self.name):
            raise CannotServe(
                f"expected the instance's name to be a short lower-case word, got: {self.name!r}"
            )

    @property
    def key(self) -> str:
        """The name under which this instance is known on the whole machine."""
        return f"{hashlib.sha256(os.fsencode(self.clone)).hexdigest()[:10]}-{self.name}"

    @property
    def folder(self) -> Path:
        """Everything of this instance; removed with it."""
        return self.home / self.key

    @property
    def state_file(self) -> Path:
        """What is remembered of it."""
        return self.folder / "state.json"

    def prepare(self) -> None:
        """Create the folder, open for passing through: each service's own folder in it is closed."""
        for folder in (self.home, self.folder):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)

    def remove(self) -> None:
        """Delete data, logs and state."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def kept_logs(self) -> Path:
        """The services' logs of the last run, if it failed."""
        return self.home / f"{self.key}.logs"

    def keep_logs(self) -> None:
        """Put the services' logs aside before they are removed with everything else, and say where."""
        for log in self.folder.glob("*/*.log"):
            self.kept_logs.mkdir(exist_ok=True)
            shutil.copy(log, self.kept_logs)
        if self.kept_logs.exists():
            say(f"The services' logs of this run: {self.kept_logs}")

    def forget_logs(self) -> None:
        """Remove an earlier run's logs."""
        shutil.rmtree(self.kept_logs, ignore_errors=True)

    @contextlib.contextmanager
    def hold(self, purpose: str, seconds: float) -> Iterator[None]:
        """Be the only command with this `purpose` on this instance.

        Waits up to `seconds` for another one's end, then raises `CannotServe`. A killed one holds nothing.
        """
        busy = (
            f"another command uses the instance {self.name!r} of this clone ({purpose}); "
            "wait for its end, or end it"
        )
        with lock.hold(self.home / f"{self.key}.{purpose}.lock", seconds, busy):
            yield


def say(text: str) -> None:
    """Tell the person what happens; on stderr, so that what a command prints stays what was asked for."""
    print(text, file=sys.stderr, flush=True)
