"""How does a command get services for the time it runs, and nothing stay behind whatever happens to it?"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType

from deploy.ownership import give_back
from deploy.services import loopback
from deploy.services.choice import provide
from deploy.services.errors import CannotServe
from deploy.services.instance import CHANGE_SECONDS, Instance, say

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal came while the services were being started or stopped."""

    def __init__(self, number: int) -> None:
        self.number = number


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without settings of the application: tests take nothing but what is theirs."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("JOBS_") or name.startswith("JOBS_TEST_")
    }


def check(instance: Instance, rabbitmq: int | None = None) -> bool:
    """Whether `run` will start services; False where the person named some.

    Raises `CannotServe` when it could not have any, or when a version is asked of what the person named.
    """
    given = loopback.given(os.environ)
    if given is None:
        provide(instance, rabbitmq)
        return True
    if rabbitmq is not None:
        raise CannotServe(
            f"expected no services to be named with --rabbitmq {rabbitmq}, got: {' and '.join(given)}; "
            "unset them, or run the tests on them without that option"
        )
    return False


def run(instance: Instance, command: Sequence[str], rabbitmq: int | None = None) -> int:
    """Run a command with services, its own for this one run unless the person named some.

    The command is told where by `JOBS_TEST_BROKER_URL`, `JOBS_TEST_DATABASE_URL`, `JOBS_TEST_MANAGEMENT_URL`;
    for services of its own also `JOBS_TEST_OWNED=1` and, in `JOBS_TEST_CTL`, the command that controls them.
    `rabbitmq` is the oldest major version of RabbitMQ that will do; the command is told in
    `JOBS_TEST_RABBITMQ`. Returns the command's exit code, 128 + N when signal N ended it.
    """
    if not command:
        raise CannotServe("expected a command to run, got: nothing; give one after `run`")
    environment = scrubbed(os.environ)
    for name in ("JOBS_TEST_OWNED", "JOBS_TEST_CTL", "JOBS_TEST_RABBITMQ"):
        environment.pop(name, None)
    if not check(instance, rabbitmq):
        return _wait(command, environment)
    if rabbitmq is not None:
        environment["JOBS_TEST_RABBITMQ"] = str(rabbitmq)
    with instance.hold("run", 0):
        return _with_own_services(instance, command, environment, rabbitmq)


def _with_own_services(
    instance: Instance, command: Sequence[str], environment: dict[str, str], rabbitmq: int | None
) -> int:
    for number in SIGNALS:
        signal.signal(number, _raise)
    code = 1
    try:
        began = time.monotonic()
        with instance.hold("change", CHANGE_SECONDS):
            if instance.state_file.exists():
                provide(instance).remove()  # what a killed run left behind
            instance.forget_logs()
            engine = provide(instance, rabbitmq)
            engine.start()
            endpoints = engine.state.endpoints
        say(f"{engine.versions()}, ready after {time.monotonic() - began:.0f} s")
        control = [
            sys.executable,
            "-m",
            "deploy.services",
            "--home",
            str(instance.home),
            "--instance",
            instance.name,
        ]
        own = {"JOBS_TEST_OWNED": "1", "JOBS_TEST_CTL": shlex.join(control)}
        code = _wait(command, environment | endpoints.variables("JOBS_TEST_") | own)
    except Ended as ended:
        code = 128 + ended.number
    finally:
        _ignore_signals()
        with instance.hold("change", CHANGE_SECONDS):
            if code != 0:
                instance.keep_logs()
            provide(instance).remove()
        give_back(instance.clone)
    return code


def _raise(number: int, frame: FrameType | None) -> None:
    _ignore_signals()  # an impatient second one must not end the cleaning up
    raise Ended(number)


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _wait(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command to its end. The terminal sends Ctrl-C to it directly; other signals are passed on."""
    try:
        child = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise CannotServe(f"expected {command[0]} to run, got: {error.strerror}") from error

    def pass_on(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(number)

    for number in SIGNALS:
        signal.signal(number, pass_on)
    code = child.wait()
    return 128 - code if code < 0 else code
