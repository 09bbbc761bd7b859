"""How do the rivals that pip does not know come onto this machine? `python3 -m deploy.rivals` brings them.

BullMQ is a package for Node.js and needs a Redis server. Neither is needed for anything but its figures: what
cannot be had is left out, and the benchmark says so.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from deploy.ownership import give_back
from deploy.services.errors import CannotServe
from deploy.services.packages import install

BULLMQ: Final = Path("tests/bench/bullmq")


def is_current(folder: Path) -> bool:
    """Whether `node_modules/` holds what the lock file says."""
    try:
        return (folder / "node_modules/installed").read_text() == fingerprint(folder)
    except OSError:
        return False


def fingerprint(folder: Path) -> str:
    """What `node_modules/` is made from."""
    return hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()


def bring_bullmq(folder: Path) -> None:
    """Install what the lock file says, unless it is there; without Node.js, nothing."""
    if is_current(folder) or shutil.which("npm") is None:
        return
    say(f"Installing {folder.name}'s packages into node_modules")
    # No scripts: the packages run without what they would compile.
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
    if subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode == 0:
        (folder / "node_modules/installed").write_text(fingerprint(folder))


def bring_redis() -> None:
    """Install Debian's Redis, unless one is there; it starts no instance. Without root's rights, nothing."""
    if shutil.which("redis-server") or shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    say("Installing redis-server; no instance of it is started")
    try:
        install(["redis-server"])
    except CannotServe as problem:
        say(str(problem))


def say(text: str) -> None:
    """Say it where it does not mix with figures."""
    print(text, file=sys.stderr)


def main() -> None:
    """Bring what can be brought; what cannot, the benchmark leaves out."""
    clone = Path(__file__).resolve().parent.parent
    try:
        bring_bullmq(clone / BULLMQ)
        if shutil.which("node") is not None:
            bring_redis()
    finally:
        give_back(clone)


if __name__ == "__main__":
    main()
