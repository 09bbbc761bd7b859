"""The command line: parse, call, print."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.ownership import give_back
from deploy.services import envfile, running
from deploy.services.choice import provide
from deploy.services.engine import SERVICES
from deploy.services.errors import CannotServe
from deploy.services.instance import CHANGE_SECONDS, Instance, default_home, say

# What follows one of these words belongs to another program and is not looked at.
PASSED_ON: Final = ("rabbitmqctl", "run")

NEXT: Final = """\
RabbitMQ's own page: http://127.0.0.1:{management} (user jobs, password in .env)

Next:
  . .venv/bin/activate
  jobsctl migrate
  jobsctl seed
  jobsctl send charge_credit t1 m1
  jobsctl send summarize_chat chat-1 2
  jobsctl send index_resource resource-1 1
  dramatiq jobs &
  jobsctl queues
Afterwards: make services-stop (data stays), make services-clean (data goes, and what was written to .env)."""


def parser() -> argparse.ArgumentParser:
    """Options and commands."""
    top = argparse.ArgumentParser(prog="python3 -m deploy.services", description="Services of this clone.")
    top.add_argument(
        "--instance", default="dev", help="which instance: dev, test, test4, bench (default: dev)"
    )
    top.add_argument(
        "--home", type=Path, default=None, help="folder of all instances (default: the system's)"
    )
    top.add_argument(
        "--rabbitmq", type=int, choices=[4], help="oldest major version for a new instance (default: any)"
    )
    commands = top.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start what does not run")
    start.add_argument("service", nargs="?", choices=SERVICES)
    start.add_argument(
        "--env-file", type=Path, help="write the addresses there, for `jobsctl` and `dramatiq`"
    )
    for name, text in (("stop", "end orderly; data stays"), ("restart", "stop, then start")):
        commands.add_parser(name, help=text).add_argument("service", nargs="?", choices=SERVICES)
    commands.add_parser("kill", help="end as a crash would").add_argument("service", choices=SERVICES)
    commands.add_parser("status", help="what runs, and where")
    commands.add_parser("check", help="fail if `run` could not get services")
    clean = commands.add_parser("clean", help="stop and delete the data")
    clean.add_argument("--env-file", type=Path, help="take out the addresses that `start` wrote there")
    commands.add_parser("rabbitmqctl", help="run rabbitmqctl on the node: rabbitmqctl ARGUMENT…")
    commands.add_parser("run", help="run a command with services of its own: run COMMAND…")
    return top


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and those that are passed on as they are."""
    for place, word in enumerate(argv):
        if word in PASSED_ON:
            return list(argv[: place + 1]), list(argv[place + 1 :])
    return list(argv), []


def main(argv: Sequence[str]) -> int:
    """Carry out one command; its exit code, 1 with one message when services cannot be had."""
    ours, passed_on = split(argv)
    options = parser().parse_args(ours)
    try:
        instance = Instance(options.instance, options.home or default_home())
        if options.command == "check":
            running.check(instance, options.rabbitmq)
        elif options.command == "run":
            return running.run(instance, passed_on, options.rabbitmq)
        elif options.command == "rabbitmqctl":
            return provide(instance).rabbitmqctl(passed_on)
        elif options.command == "status":
            return status(instance)
        else:
            change(instance, options)
    except CannotServe as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def change(instance: Instance, options: argparse.Namespace) -> None:
    """Start, stop, restart, kill or clean, one such command at a time."""
    provide(instance, options.rabbitmq)  # says at once if there is no way
    with instance.hold("change", CHANGE_SECONDS):
        _change(instance, options)


def _change(instance: Instance, options: argparse.Namespace) -> None:
    services = SERVICES if getattr(options, "service", None) is None else (options.service,)
    if options.command != "start" and not instance.state_file.exists():
        say(f"Nothing to {options.command}: no services of this clone were started")
        return
    engine = provide(instance, options.rabbitmq)
    if options.command == "kill":
        engine.kill(options.service)
    if options.command in ("stop", "restart"):
        engine.stop(services)
    if options.command == "stop":
        say(f"Stopped {' and '.join(services)}; data stays")
    if options.command == "clean":
        variables = engine.state.endpoints.variables("JOBS_")
        engine.remove()
        say("Stopped the services and deleted their data")
        if options.env_file is not None:
            say(envfile.remove(options.env_file, variables))
            give_back(instance.clone)
    if options.command in ("start", "restart"):
        engine.start(services)
    if options.command == "start" and options.env_file is not None:
        variables = engine.state.endpoints.variables("JOBS_")
        envfile.write(options.env_file, variables)
        give_back(instance.clone)
        print(f"{engine.versions()}: running.\nWrote {', '.join(variables)} to {options.env_file}.")
        print(NEXT.format(management=engine.state.ports.management))


def status(instance: Instance) -> int:
    """Print what runs and where; 1 if something does not run."""
    if not instance.state_file.exists():
        print("not started")
        return 1
    engine = provide(instance)
    running_now = engine.running()
    for name, runs in running_now.items():
        print(f"{name}: {'running' if runs else 'stopped'}")
    for name, value in engine.state.endpoints.variables("JOBS_").items():
        print(f"{name}={value}")
    return 0 if all(running_now.values()) else 1
