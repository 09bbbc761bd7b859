"""Who provides an instance? Who made it; for a new one the Docker engine, if one answers, else Debian."""

from deploy.services import docker
from deploy.services.debian import Debian
from deploy.services.docker import Docker
from deploy.services.engine import Engine
from deploy.services.instance import Instance
from deploy.services.state import State


def provide(instance: Instance) -> Engine:
    """The engine of this instance, with what is remembered about it; nothing is started."""
    state = State.load(instance.state_file)
    if state is None:
        state = State.new("docker" if docker.engine_answers() else "debian")
    return Docker(instance, state) if state.engine == "docker" else Debian(instance, state)
