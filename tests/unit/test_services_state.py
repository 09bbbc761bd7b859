"""Is what was remembered about an instance still true?"""

import dataclasses
import socket
import subprocess
import sys
from pathlib import Path
from signal import SIGTERM

import pytest

from deploy.services import ports
from deploy.services.errors import CannotServe
from deploy.services.instance import Instance
from deploy.services.processes import Process, end, identify
from deploy.services.state import State


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    """A process that runs until it is ended."""
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def test_process_is_known_by_more_than_its_number(child: subprocess.Popen[bytes]) -> None:
    """Another process with the same number, and the same number after a reboot, are not ours."""
    process = identify(child.pid)
    assert process is not None
    assert process.is_alive()
    assert not dataclasses.replace(process, started=process.started + 1).is_alive()
    assert not dataclasses.replace(process, boot="another").is_alive()
    child.communicate()


def test_process_that_ended_uncollected_is_gone(child: subprocess.Popen[bytes]) -> None:
    """A process that ended counts as gone before its parent has collected it."""
    process = identify(child.pid)
    assert process is not None
    end(process, SIGTERM)
    assert not process.is_alive()
    assert identify(child.pid) is None
    assert child.wait() == -SIGTERM
    assert child.stdin is not None
    child.stdin.close()


def test_another_process_is_not_ended(child: subprocess.Popen[bytes]) -> None:
    """A process that merely has the number of one of ours gets no signal."""
    process = identify(child.pid)
    assert process is not None
    end(dataclasses.replace(process, started=process.started - 1), SIGTERM)
    child.communicate(b"\n")
    assert child.returncode == 0


def test_state_comes_back_as_it_was(tmp_path: Path) -> None:
    """What is saved is loaded, and its file is closed to others."""
    state = State.new("debian")
    state.processes["rabbitmq"] = Process(1, 2, "boot")
    state.save(tmp_path / "folder" / "state.json")
    assert State.load(tmp_path / "folder" / "state.json") == state
    assert (tmp_path / "folder" / "state.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"engine": "debian", "ports": {}, "password": "x"}'])
def test_unreadable_state_is_none(tmp_path: Path, text: str) -> None:
    """A file that is cut off or of another version is as good as none."""
    (tmp_path / "state.json").write_text(text)
    assert State.load(tmp_path / "state.json") is None


def test_ports_change_only_when_taken() -> None:
    """An instance keeps its ports, which people have noted, until something else listens on one."""
    state = State.new("debian")
    before = state.ports
    state.take_free_ports()
    assert state.ports == before
    with socket.create_server(("127.0.0.1", before.postgresql)):
        assert not ports.is_free(before.postgresql)
        state.take_free_ports()
    assert state.ports != before
    assert len(set(dataclasses.astuple(state.ports))) == 6


def test_one_command_at_a_time(tmp_path: Path) -> None:
    """A second command on an instance is told so until the first one ends; another instance is free."""
    instance = Instance("test", tmp_path)
    with instance.hold("run", 0):
        with (
            pytest.raises(CannotServe, match="another command uses the instance 'test'"),
            instance.hold("run", 0),
        ):
            pass
        with Instance("dev", tmp_path).hold("run", 0):
            pass
    with instance.hold("run", 0):
        pass
    assert list(tmp_path.iterdir()) == []


def test_clones_do_not_share_an_instance(tmp_path: Path) -> None:
    """Two clones on one machine have instances of their own under the same name."""
    assert Instance("test", tmp_path, tmp_path / "a").key != Instance("test", tmp_path, tmp_path / "b").key
