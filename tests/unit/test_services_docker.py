"""What is asked of Docker? A program that writes down its arguments stands in for the client."""

import json
import sys
from pathlib import Path

import pytest

from deploy.services import docker
from deploy.services.docker import Docker
from deploy.services.errors import CannotServe
from deploy.services.instance import Instance
from deploy.services.state import State

CLIENT = """\
#!{python}
import json, os, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps([words, os.environ.get("POSTGRES_PORT")]) + "\\n")
if words[0] == "info":
    print({server!r})
if words[:2] == ["compose", "version"]:
    print("2.40.0")
sys.exit({code} if words[0] == "info" or "up" in words else 0)
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *, server: str = "28.0", code: int = 0) -> Path:
    """Put the stand-in first on the path; the file to which it writes."""
    log = folder / "log"
    log.touch()
    client = folder / "docker"
    client.write_text(CLIENT.format(python=sys.executable, log=str(log), server=server, code=code))
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return log


def commands(log: Path) -> list[list[str]]:
    """What followed the project and the file in each call."""
    return [words[5:] for words, _ in map(json.loads, log.read_text().splitlines())]


def test_engine_that_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine with Compose is used."""
    install(tmp_path, monkeypatch)
    assert docker.engine_answers()


def test_client_alone_is_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose engine does not answer counts as no Docker, with and without an error code."""
    install(tmp_path, monkeypatch, server="", code=1)
    assert not docker.engine_answers()
    install(tmp_path, monkeypatch, server="", code=0)
    assert not docker.engine_answers()


def test_no_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a client has no engine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not docker.engine_answers()


def test_failed_start_shows_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When Compose fails, the end of the services' logs follows, and the state stays to clean up with."""
    log = install(tmp_path, monkeypatch, code=1)
    instance = Instance("test", tmp_path / "home")
    with pytest.raises(CannotServe, match="expected docker compose up to succeed, got: exit 1"):
        Docker(instance, State.new("docker")).start()
    assert commands(log)[-2:] == [
        ["up", "-d", "--wait", "rabbitmq", "postgresql"],
        ["logs", "--tail", "20", "rabbitmq", "postgresql"],
    ]
    assert instance.state_file.exists()


def test_project_and_ports_are_the_instances_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands name the instance's own project, and Compose gets its own ports."""
    log = install(tmp_path, monkeypatch)
    instance = Instance("test", tmp_path / "home")
    engine = Docker(instance, State.new("docker"))
    engine.stop()
    engine.kill("rabbitmq")
    engine.rabbitmqctl(["-q", "list_queues"])
    engine.remove()
    assert commands(log) == [
        ["stop", "rabbitmq", "postgresql"],
        ["kill", "rabbitmq"],
        ["exec", "-T", "rabbitmq", "rabbitmqctl", "-q", "list_queues"],
        ["down", "--volumes", "--timeout", "20"],
    ]
    for words, port in map(json.loads, log.read_text().splitlines()):
        assert words[:3] == ["compose", "-p", f"jobs-kit-{instance.key}"]
        assert port == str(engine.state.ports.postgresql)
