"""A RabbitMQ node of our own: how is it set up, started, asked and ended, whatever programs it runs on?"""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.services import readiness
from deploy.services.endpoints import USER
from deploy.services.errors import CannotServe
from deploy.services.instance import Instance
from deploy.services.processes import end, spawn, tail
from deploy.services.programs import SCRIPTS, Programs
from deploy.services.state import State

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Erlang's own links between node and command line stay on the loopback interface too, and the
# command line starts no port mapper: the one we started can be ended, its daemon could not.
LOOPBACK: Final = "-kernel inet_dist_use_interface {127,0,0,1}"


def configuration(state: State) -> str:
    """`rabbitmq.conf`: loopback listeners, one user, limits that a nearly full machine passes."""
    ports = state.ports
    return f"""\
listeners.tcp.1 = 127.0.0.1:{ports.amqp}
management.tcp.ip = 127.0.0.1
management.tcp.port = {ports.management}
prometheus.tcp.ip = 127.0.0.1
prometheus.tcp.port = {ports.prometheus}
default_user = {USER}
default_pass = {state.password}
disk_free_limit.absolute = 50MB
raft.wal_max_size_bytes = 64000000
collect_statistics_interval = 1000
"""


class RabbitMQ:
    """The node of one instance, with its own cookie, data, plugins and Erlang port mapper (epmd).

    Parameters:
        instance: whose node it is.
        state: what is remembered about the instance.
        programs: what the node runs on.
    """

    name = "rabbitmq"

    def __init__(self, instance: Instance, state: State, programs: Programs) -> None:
        self.state = state
        self.programs = programs
        self.folder = instance.folder / self.name
        self.log = self.folder / "rabbitmq.log"
        self.node = f"jobs-{instance.key}@localhost"

    def environment(self) -> dict[str, str]:
        """All that the scripts are told; nothing of the caller's, nothing from `/etc/rabbitmq`."""
        ports = self.state.ports
        folder = self.programs.seen(self.folder)
        return {
            "PATH": PATH,
            "LANG": "C.UTF-8",
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(ports.epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_CRASH_DUMP": "/dev/null",
            # The start script then becomes the node instead of waiting for it: what we start is the node.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_DIST_PORT": str(ports.distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": LOOPBACK,
            "RABBITMQ_CTL_ERL_ARGS": f"{LOOPBACK} -start_epmd false",
            "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONFIG_FILES": str(folder / "conf.d"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "config"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
        }

    def begin(self) -> None:
        """Write the configuration and start port mapper and node, where they do not run yet."""
        if self.state.running(self.name) is not None:
            return
        self.folder.mkdir(exist_ok=True)
        (self.folder / "enabled_plugins").write_text("[rabbitmq_management,rabbitmq_prometheus].\n")
        (self.folder / "rabbitmq.conf").write_text(configuration(self.state))
        for path in (self.folder, *self.folder.glob("*")):
            os.chown(path, *self.programs.owner())
        self.folder.chmod(0o700)
        if self.state.running("epmd") is None:
            self._spawn("epmd", ["epmd", "-address", "127.0.0.1", "-port", str(self.state.ports.epmd)])
        self._spawn(self.name, [SCRIPTS / "rabbitmq-server"])

    def _spawn(self, name: str, argv: Sequence[str | Path]) -> None:
        self.state.processes[name] = spawn(
            self.programs.argv(self.folder, argv),
            user=self.programs.user,
            folder=self.folder,
            environment=self.environment(),
            log=self.log,
        )

    def wait(self) -> None:
        """Return when clients are served; raise `CannotServe` with the log's end when they will not be."""
        readiness.wait_until(
            lambda: readiness.rabbitmq_answers(self.state.ports, self.state.password),
            name="RabbitMQ",
            failed=lambda: tail(self.log) if self.state.running(self.name) is None else None,
        )

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """End the node, orderly with SIGTERM or as a crash with SIGKILL, and its port mapper."""
        for name, number in ((self.name, first), ("epmd", signal.SIGTERM)):
            process = self.state.processes.get(name)
            if process is not None:
                end(process, number)
                del self.state.processes[name]

    def ctl(self, arguments: Sequence[str]) -> int:
        """Run `rabbitmqctl` against this node with the caller's terminal; its exit code."""
        if self.state.running(self.name) is None:
            raise CannotServe("expected RabbitMQ to run, got: no process; start it first")
        return subprocess.run(
            self.programs.argv(self.folder, [SCRIPTS / "rabbitmqctl", *arguments]),
            cwd=self.folder,
            env=self.environment(),
            user=self.programs.user,
            group=self.programs.user,
            extra_groups=[],
        ).returncode
