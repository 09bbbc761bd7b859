"""Who provides an instance? Who made it; for a new one the Docker engine, if one answers, else Debian."""

from deploy.services import docker
from deploy.services.debian import Debian
from deploy.services.docker import Docker
from deploy.services.engine import Engine
from deploy.services.errors import CannotServe
from deploy.services.instance import Instance
from deploy.services.state import State


def provide(instance: Instance, rabbitmq: int | None = None) -> Engine:
    """The engine of this instance, with what is remembered about it; nothing is started.

    Parameters:
        instance: which one.
        rabbitmq: the oldest major version of RabbitMQ that will do; None for the one at hand. An instance
            keeps what it was made with.
    """
    state = State.load(instance.state_file)
    if state is None:
        state = State.new("docker" if docker.engine_answers() else "debian", rabbitmq)
    elif rabbitmq not in (None, state.rabbitmq):
        raise CannotServe(
            f"expected the instance {instance.name!r} to be made with --rabbitmq {rabbitmq}, got: "
            f"{state.rabbitmq or 'one made without'}; `clean` it first, or name another one with --instance"
        )
    return Docker(instance, state) if state.engine == "docker" else Debian(instance, state)
