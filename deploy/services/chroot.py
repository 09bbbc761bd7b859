"""RabbitMQ 4 where the system's own package is older: how is a newer Debian built in a folder, and used?

The folder serves all instances of the machine, and later runs. Nothing is mounted where others see it: each
program runs in a mount namespace of its own, which the kernel takes away with it, whatever ends it. So nobody
can delete `/proc` or an instance's data by deleting the folder.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.services import lock
from deploy.services.errors import CannotServe
from deploy.services.instance import say
from deploy.services.programs import require, version

SUITE: Final = "trixie"  # Debian 13
OLDEST: Final = (4,)
BUILD_SECONDS: Final = 1200.0  # how long one command waits for another that builds the folder
SBIN: Final = "/usr/local/sbin:/usr/sbin:/sbin"  # not on everybody's path
SEEN: Final = Path("/srv")
# User and group, in numbers that no account of the system has: those in the folder's own /etc/passwd may be
# somebody else's outside. Neither Debian nor systemd gives this one out: https://systemd.io/UIDS-GIDS
NUMBER: Final = 65528

# Arguments: the folder, the node's folder, the command. Ends as the command, under the same number.
ENTER: Final = f"""\
mount -t proc proc "$1/proc"
mount --bind "$2" "$1{SEEN}"
root=$1
shift 2
exec chroot --userspec=+{NUMBER}:+{NUMBER} "$root" env --chdir={SEEN} "$@"
"""
# Of what runs in there nothing outlives this command, not even when it is killed: nobody writes on in a
# folder that the next command deletes.
ALONE: Final = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
)


class Chroot:
    """The programs of a Debian 13 in a folder.

    Parameters:
        home: the folder of all instances.

    Raises:
        CannotServe: this process may not mount, not even for itself alone.
    """

    user = "root"  # to mount and to enter; then they are their own user's
    origin = "Debian 13 in a chroot"

    def __init__(self, home: Path) -> None:
        self.root = home / "debian-13"
        tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            raise CannotServe(
                "expected to be allowed to mount for a process of our own, as RabbitMQ 4 on Debian 12 needs, "
                f"got: {tried.stderr.strip()}; use a Docker engine, or a container with CAP_SYS_ADMIN"
            )

    def missing(self) -> list[str]:
        return [] if self.root.exists() or shutil.which("debootstrap", path=_path()) else ["debootstrap"]

    def ensure(self) -> None:
        busy = f"another command is building {self.root}; wait for its end, or end it"
        with lock.hold(self.root.with_suffix(".lock"), BUILD_SECONDS, busy):
            if not self.root.exists():
                self._build()

    def _build(self) -> None:
        """Build the folder under another name: one that was interrupted does not count."""
        say(f"Building {self.root} for this and later runs: Debian 13 with RabbitMQ, some 400 MB (minutes)")
        draft = self.root.with_suffix(".draft")
        if draft.exists():
            delete(draft)
        bootstrap(draft, mirror())
        require(version(draft), OLDEST)
        finish(draft)
        draft.rename(self.root)

    def version(self) -> tuple[int, ...] | None:
        return version(self.root)

    def owner(self) -> tuple[int, int]:
        return NUMBER, NUMBER

    def seen(self, folder: Path) -> Path:
        return SEEN

    def argv(self, folder: Path, argv: Sequence[str | Path]) -> list[str | Path]:
        return ["unshare", "--mount", "sh", "-ec", ENTER, "enter", self.root, folder, *argv]


def bootstrap(folder: Path, archive: str | None) -> None:
    """Install a Debian 13 with RabbitMQ in an empty folder.

    Parameters:
        folder: is created.
        archive: where the packages come from; None leaves that to debootstrap.

    Raises:
        CannotServe: with debootstrap's last words.
    """
    options = ["--variant=minbase", "--include=rabbitmq-server"]
    done = subprocess.run(
        [*ALONE, "debootstrap", *options, SUITE, folder, *([archive] if archive else [])],
        env=os.environ | {"PATH": _path(), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-15:])
        raise CannotServe(f"expected debootstrap to build {folder}, got: exit {done.returncode}\n{end}")


def finish(folder: Path) -> None:
    """Have the node ask no name server, and drop the packages that are installed."""
    # It looks the machine's own name up for every connection; an answer that is lost takes 5 s.
    (folder / "etc" / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    (folder / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    for package in folder.glob("var/cache/apt/archives/*.deb"):
        package.unlink()


def _path() -> str:
    return f"{os.environ.get('PATH', '/usr/bin:/bin')}:{SBIN}"


def mirror() -> str | None:
    """The archive that the system's own packages come from; None if apt names none that debootstrap takes."""
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    wanted = "$(CREATED_BY)|$(COMPONENT)|$(ORIGIN)|$(CODENAME)|$(REPO_URI)"
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", wanted], capture_output=True, text=True
    ).stdout
    return archive_in(listed, codename)


def archive_in(listed: str, codename: str) -> str | None:
    """The address of Debian's main archive among apt's targets, one a line; None if it is not there."""
    start = f"Packages|main|Debian|{codename}|"
    for line in listed.splitlines():
        address = line.removeprefix(start)
        if address != line and address.startswith(("http://", "https://", "file:")):
            return address
    return None


def delete(folder: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> None:
    """Delete a tree in which nothing is mounted. Raises `CannotServe` when something is."""
    mounted = mounts_in(folder, mountinfo.read_text())
    if mounted:
        raise CannotServe(
            f"expected nothing to be mounted in {folder}, got: {mounted[-1]}; run: umount {mounted[-1]}"
        )
    shutil.rmtree(folder)


def mounts_in(folder: Path, mountinfo: str) -> list[Path]:
    """What is mounted at or below a folder, outermost first, according to a `/proc/PID/mountinfo`."""
    # The fifth field; blanks and the like are written in octal, as \040.
    points = [
        Path(line.split(" ")[4].encode().decode("unicode_escape")) for line in mountinfo.splitlines() if line
    ]
    return [point for point in points if point.is_relative_to(folder)]
