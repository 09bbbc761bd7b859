"""How are Debian's packages installed without a system instance being started or set up?"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from deploy.services.errors import CannotServe

# Asked by Debian's maintainer scripts before they start a service; exit code 101 is "no".
POLICY: Final = Path("usr/sbin/policy-rc.d")
MARK: Final = "# placed by jobs-kit for the time of one installation"
# Read by postgresql-common, whose first server package otherwise sets up a cluster on port 5432.
NO_CLUSTER: Final = Path("etc/postgresql-common/createcluster.d/jobs-kit.conf")
# Their packages also arrange for a start at the next boot.
STARTED_AT_BOOT: Final = ("rabbitmq-server", "redis-server")


def install(names: Sequence[str]) -> None:
    """Install these packages. Raises `CannotServe` with the package manager's last words."""
    if shutil.which("apt-get") is None:
        raise CannotServe(
            f"expected {' and '.join(names)} or a Docker engine, got: neither, and no apt-get; start Docker"
        )
    with no_service_starts(), no_cluster():
        # A failing update may concern a source that is not needed: the installation will tell.
        _apt("update")
        done = _apt("install", "-y", "--no-install-recommends", *names)
    if done.returncode != 0:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise CannotServe(
            f"expected apt-get to install {' '.join(names)}, got: exit {done.returncode}\n{end}"
        )
    servers = [name for name in names if name in STARTED_AT_BOOT]
    if servers and shutil.which("systemctl") is not None:
        # Whoever wants the start at the next boot can have it back.
        subprocess.run(["systemctl", "disable", "--quiet", *servers], capture_output=True)


def _apt(*arguments: str) -> subprocess.CompletedProcess[str]:
    options = ["-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        ["apt-get", *options, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@contextlib.contextmanager
def no_service_starts(root: Path = Path("/")) -> Iterator[None]:
    """Let no maintainer script start a service meanwhile; a policy that was there is back afterwards.

    After a crash in between, the next run puts the saved policy back.
    """
    policy = root / POLICY
    saved = policy.with_name("policy-rc.d.jobs-kit-saved")
    if os.path.lexists(policy) and not _is_ours(policy):
        policy.rename(saved)
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text(f"#!/bin/sh\n{MARK}\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        if os.path.lexists(saved):
            saved.replace(policy)
        else:
            policy.unlink(missing_ok=True)


def _is_ours(policy: Path) -> bool:
    try:
        return MARK in policy.read_text()
    except (OSError, UnicodeDecodeError):
        return False


@contextlib.contextmanager
def no_cluster(root: Path = Path("/")) -> Iterator[None]:
    """Let PostgreSQL's packages set up no cluster meanwhile; nothing of it stays."""
    setting = root / NO_CLUSTER
    folders = [folder for folder in (setting.parent, setting.parent.parent) if not folder.exists()]
    setting.parent.mkdir(parents=True, exist_ok=True)
    setting.write_text("create_main_cluster = false\n")
    try:
        yield
    finally:
        setting.unlink(missing_ok=True)
        for folder in folders:
            with contextlib.suppress(OSError):  # the packages have put files there: it stays
                folder.rmdir()
