"""Which RabbitMQ does an instance run on, and does it stay with that?"""

from pathlib import Path

import pytest

from deploy.services.choice import provide
from deploy.services.chroot import Chroot
from deploy.services.debian import rabbitmq_programs
from deploy.services.docker import Docker
from deploy.services.errors import CannotServe
from deploy.services.instance import CLONE, Instance
from deploy.services.programs import System
from deploy.services.running import check
from deploy.services.state import State


@pytest.mark.parametrize(
    ("asked", "installed", "system", "expected"),
    [
        (None, (3, 10, 8), ("debian", 12), System),
        (None, None, ("debian", 12), System),
        (4, (3, 10, 8), ("debian", 12), Chroot),
        (4, None, ("debian", 12), Chroot),
        (4, (4, 1, 2), ("debian", 12), System),
        (4, None, ("debian", 13), System),
        (4, None, ("debian", 99), System),
        (4, (4, 0, 5), ("debian", 13), System),
        (4, (4, 0, 5), ("ubuntu", 26), System),
    ],
)
def test_the_systems_package_is_taken_where_it_is_new_enough(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: int | None,
    installed: tuple[int, ...] | None,
    system: tuple[str, int],
    expected: type,
) -> None:
    """Only where RabbitMQ 4 is asked for and Debian 12 has none, it comes from a chroot."""
    unshare = tmp_path / "unshare"
    unshare.write_text("#!/bin/sh\n")
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert type(rabbitmq_programs(asked, tmp_path, installed, system)) is expected


@pytest.mark.parametrize(
    ("installed", "system"),
    [
        (None, ("debian", 11)),
        ((3, 12), ("debian", 13)),
        (None, ("ubuntu", 24)),
        (None, ("an unknown system", 0)),
    ],
)
def test_where_there_is_no_way_the_error_says_so(
    tmp_path: Path, installed: tuple[int, ...] | None, system: tuple[str, int]
) -> None:
    """On another system, RabbitMQ 4 takes a Docker engine."""
    with pytest.raises(CannotServe, match=f"got: none of them on {system[0]} {system[1]}; start Docker"):
        rabbitmq_programs(4, tmp_path, installed, system)


def test_an_instance_keeps_the_version_it_was_made_with(tmp_path: Path) -> None:
    """Later commands need not repeat what was asked for, and cannot ask for something else."""
    instance = Instance("test", tmp_path)
    State.new("docker", 4).save(instance.state_file)
    assert isinstance(provide(instance), Docker)
    assert isinstance(provide(instance, 4), Docker)
    State.new("docker").save(instance.state_file)
    assert isinstance(provide(instance), Docker)
    with pytest.raises(CannotServe, match="to be made with --rabbitmq 4, got: one made without; `clean` it"):
        provide(instance, 4)


def test_a_state_of_an_earlier_version_asked_for_nothing(tmp_path: Path) -> None:
    """An instance that was made before there was a choice is still known."""
    path = tmp_path / "state.json"
    state = State.new("debian")
    state.save(path)
    path.write_text(path.read_text().replace('"rabbitmq": null,', ""))
    assert State.load(path) == state


def test_no_version_can_be_asked_of_services_that_a_person_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that are meant for RabbitMQ 4 do not pass on whatever somebody's variables name."""
    monkeypatch.setenv("JOBS_TEST_BROKER_URL", "amqp://127.0.0.1")
    monkeypatch.setenv("JOBS_TEST_DATABASE_URL", "postgresql://127.0.0.1/d")
    monkeypatch.delenv("JOBS_TEST_MANAGEMENT_URL", raising=False)
    assert not check(Instance("test", tmp_path))
    with pytest.raises(CannotServe, match="got: JOBS_TEST_BROKER_URL and JOBS_TEST_DATABASE_URL; unset them"):
        check(Instance("test", tmp_path), 4)


def test_the_docker_image_is_rabbitmq_4() -> None:
    """With Docker, every instance has RabbitMQ 4."""
    assert "image: rabbitmq:4." in (CLONE / "docker-compose.yml").read_text()
