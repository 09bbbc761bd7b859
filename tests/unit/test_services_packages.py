"""Is the system as it was after packages were installed?"""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.services.packages import NO_CLUSTER, POLICY, no_cluster, no_service_starts


def files(root: Path) -> dict[str, str]:
    """Every file below, with its text."""
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_services_are_not_started_meanwhile(tmp_path: Path) -> None:
    """During an installation the policy answers 101, "no"; afterwards there is none, as before."""
    with no_service_starts(tmp_path):
        assert subprocess.run([tmp_path / POLICY, "rabbitmq-server", "start"]).returncode == 101
    assert files(tmp_path) == {}


@pytest.mark.parametrize("fails", [False, True])
def test_own_policy_comes_back(tmp_path: Path, fails: bool) -> None:
    """A policy that the machine has is in force again afterwards, also when the installation failed."""
    policy = tmp_path / POLICY
    policy.parent.mkdir(parents=True)
    policy.write_text("#!/bin/sh\nexit 0\n")
    policy.chmod(0o755)
    before = files(tmp_path)
    try:
        with no_service_starts(tmp_path):
            assert subprocess.run([policy]).returncode == 101
            if fails:
                raise OSError
    except OSError:
        assert fails
    assert files(tmp_path) == before
    assert os.access(policy, os.X_OK)


def test_linked_policy_comes_back_as_a_link(tmp_path: Path) -> None:
    """Debian's alternatives make the policy a link: neither the link nor its target is changed."""
    target = tmp_path / "target"
    target.write_text("theirs")
    policy = tmp_path / POLICY
    policy.parent.mkdir(parents=True)
    policy.symlink_to(target)
    with no_service_starts(tmp_path):
        assert not policy.is_symlink()
    assert policy.readlink() == target
    assert target.read_text() == "theirs"


def test_crashed_installation_is_made_good(tmp_path: Path) -> None:
    """What a killed installation left is neither saved as the machine's policy nor kept."""
    policy = tmp_path / POLICY
    policy.parent.mkdir(parents=True)
    policy.write_text("theirs")
    killed = no_service_starts(tmp_path)
    killed.__enter__()
    with no_service_starts(tmp_path):
        pass
    assert files(tmp_path) == {str(POLICY): "theirs"}


def test_no_cluster_is_set_up_meanwhile(tmp_path: Path) -> None:
    """The setting is there during an installation; afterwards it is gone, and folders that we made too."""
    with no_cluster(tmp_path):
        assert files(tmp_path) == {str(NO_CLUSTER): "create_main_cluster = false\n"}
    assert not (tmp_path / NO_CLUSTER).parent.parent.exists()


def test_package_folders_stay(tmp_path: Path) -> None:
    """A folder into which the packages have put files stays, with them."""
    with no_cluster(tmp_path):
        theirs = (tmp_path / NO_CLUSTER).parent.parent / "createcluster.conf"
        theirs.write_text("theirs")
    assert files(tmp_path) == {str(theirs.relative_to(tmp_path)): "theirs"}
