"""Where do RabbitMQ's programs come from, and how is one run as the user that they are meant for?"""

import os
import pwd
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from deploy.services.errors import CannotServe

ACCOUNT: Final = "rabbitmq"  # made by the package; the same name in a chroot
SCRIPTS: Final = Path("/usr/lib/rabbitmq/bin")
OLDEST: Final = (3, 10)


class Programs(Protocol):
    """The system's own, or those in a chroot.

    Attributes:
        user: who starts what `argv` returns.
        origin: where they come from, for a person to read.
    """

    user: str
    origin: str

    def missing(self) -> list[str]:
        """The system's packages that `ensure` needs and that are not there."""

    def ensure(self) -> None:
        """Have the programs there. Raises `CannotServe` for a version that does not do."""

    def version(self) -> tuple[int, ...] | None:
        """RabbitMQ's version, such as (3, 10, 8); None if there is none."""

    def owner(self) -> tuple[int, int]:
        """The numbers of the user and the group that run the programs."""

    def seen(self, folder: Path) -> Path:
        """The path under which the programs see the node's folder."""

    def argv(self, folder: Path, argv: Sequence[str | Path]) -> list[str | Path]:
        """The command that runs a program on the node's folder; it becomes the program, it does not wait."""


class System:
    """The programs of the system's own package.

    Parameters:
        oldest: the oldest version that will do.
    """

    user = ACCOUNT
    origin = "the system's packages"

    def __init__(self, oldest: tuple[int, ...] = OLDEST) -> None:
        self._oldest = oldest

    def missing(self) -> list[str]:
        return ["rabbitmq-server"] if self.version() is None else []

    def ensure(self) -> None:
        require(self.version(), self._oldest)

    def version(self) -> tuple[int, ...] | None:
        return version()

    def owner(self) -> tuple[int, int]:
        account = pwd.getpwnam(ACCOUNT)
        return account.pw_uid, account.pw_gid

    def seen(self, folder: Path) -> Path:
        return folder

    def argv(self, folder: Path, argv: Sequence[str | Path]) -> list[str | Path]:
        return list(argv)


def version(root: Path = Path("/")) -> tuple[int, ...] | None:
    """The version of the RabbitMQ that is installed below `root`; None if there is none."""
    scripts = root / SCRIPTS.relative_to("/")
    if not os.access(scripts / "rabbitmq-server", os.X_OK):
        return None
    names = [path.name.partition("-")[2] for path in scripts.parent.glob("lib/rabbitmq_server-*")]
    return max((tuple(int(part) for part in name.split(".") if part.isdigit()) for name in names), default=())


def require(found: tuple[int, ...] | None, oldest: tuple[int, ...]) -> None:
    """Raise `CannotServe` unless this version will do."""
    if found is None or found < oldest:
        raise CannotServe(
            f"expected rabbitmq-server to be {written(oldest)} or later, got: {written(found or ())}; "
            "use a Docker engine"
        )


def written(version: tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(map(str, version)) or "none"
