"""Is the broker of `make test-rabbitmq4` a RabbitMQ 4, kept to itself and gone afterwards?"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.services.cli import parser
from deploy.services.instance import Instance
from deploy.services.state import State

from ..control import Control
from ..rabbit import Rabbit

pytestmark = [pytest.mark.owned_services, pytest.mark.rabbitmq4]

ROOT = Path(__file__).resolve().parent.parent.parent
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}  # 127.0.0.1 and ::1, as the kernel writes them
LISTENS = "0A"
WAIT = "print('running', flush=True); input()"


@pytest.fixture
def instance() -> Instance:
    """The instance of this run."""
    options = parser().parse_args([*shlex.split(os.environ["JOBS_TEST_CTL"])[3:], "status"])
    return Instance(options.instance, options.home)


def state_of(instance: Instance) -> State:
    """What is remembered of an instance that Debian's packages provide."""
    state = State.load(instance.state_file)
    assert state is not None
    if state.engine == "docker":
        pytest.skip("what a container keeps to itself is the engine's business")
    return state


def test_the_broker_is_rabbitmq_4(rabbit: Rabbit, control: Control) -> None:
    """Broker and command line are of the version that was asked for."""
    assert int(rabbit.version.split(".")[0]) >= int(os.environ["JOBS_TEST_RABBITMQ"])
    assert control.rabbitmqctl("version").split()[-1] == rabbit.version
    assert "rabbitmq: running" in control.run("status")


def test_the_node_is_its_own_users_and_listens_on_the_loopback_interface(
    instance: Instance, control: Control
) -> None:
    """The node's processes are not root's, and no port of theirs can be reached from outside."""
    state = state_of(instance)
    users = {Path(f"/proc/{state.processes[name].pid}").stat().st_uid for name in ("rabbitmq", "epmd")}
    assert len(users) == 1
    assert users != {0}
    listening = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, _, kind, *_, user = line.split()[:8]
            if kind == LISTENS and int(user) in users:
                listening.add(local.partition(":")[0])
    assert "0100007F" in listening
    assert listening <= LOOPBACK


def test_nothing_is_mounted_where_others_see_it(instance: Instance, control: Control) -> None:
    """Whoever deletes the instances' folder deletes nothing through a mount."""
    state_of(instance)
    assert str(instance.home) not in Path("/proc/self/mountinfo").read_text()


def test_a_killed_run_leaves_what_the_next_one_ends(instance: Instance, control: Control) -> None:
    """After SIGKILL the services go on; the next run ends them, and only what all runs share stays."""
    state_of(instance)
    other = Instance("stay", instance.home)
    killed = start(other, WAIT)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "running\n"
    state = state_of(other)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert all(process.is_alive() for process in state.processes.values())
    following = start(other, "")
    following.communicate()
    assert following.returncode == 0
    assert not any(process.is_alive() for process in state.processes.values())
    assert [path.name for path in instance.home.iterdir() if path.name.startswith(other.key)] == []


def start(instance: Instance, code: str) -> subprocess.Popen[str]:
    """Run Python code with services of its own."""
    home = ["--home", str(instance.home)]
    command = [sys.executable, "-m", "deploy.services", *home, "--instance", instance.name, "--rabbitmq", "4"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JOBS_TEST_")}
    return subprocess.Popen(
        [*command, "run", sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
