"""May a worker start here? Names, arithmetic, topology and policies, before the first delivery.

A worker that must not start ends at once with one line that says why: never alive but consuming nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NoReturn

import pika

from ..errors import TopologyError
from ..logs import get_logger
from .declare import declare
from .declaring import known
from .liveness import EXIT_CONFIGURATION, EXIT_CONNECTION
from .management import Management, ManagementError, few_members
from .patience import WAY_OUT, Patience
from .policies import policy_conflicts
from .queues import Queue
from .topology import Topology
from .wire import ChannelClosed, Wire, WireError, WireRefused

log = get_logger(__name__)

_START_SECONDS: Final = 15.0
_PAUSE_SECONDS: Final = 0.5
_ACCESS_REFUSED: Final = 403


class StartUp:
    """The checks of one broker; each raises SystemExit after one CRITICAL line if a worker must not start.

    Parameters:
        specs: the declared queues.
        topologies: what each needs on the broker.
        parameters: the broker's nodes.
        management: RabbitMQ's HTTP API, None leaves policies unchecked.
        consumer_timeout: after which the broker closes a channel that holds a delivery.
        grace: what a job may take beyond its time limit.
        name: shown in RabbitMQ's list of connections.
    """

    def __init__(
        self,
        specs: Mapping[str, Queue],
        topologies: Mapping[str, Topology],
        parameters: Sequence[pika.connection.Parameters],
        management: Management | None,
        consumer_timeout: timedelta,
        grace: timedelta,
        name: str,
    ) -> None:
        self._specs = specs
        self._topologies = topologies
        self._parameters = parameters
        self._management = management
        self._consumer_timeout = consumer_timeout
        self._grace = grace
        self._name = name

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse a queue that is not declared."""
        unknown = [name for name in names if name not in self._specs]
        if unknown:
            _refuse(
                f"expected --queues to be among {known(self._specs)}, got: {', '.join(unknown)}; "
                f"correct the name or declare a Queue of that name"
            )

    def check_arithmetic(self, names: Sequence[str], threads: int) -> None:
        """Refuse to hold a delivery for longer than the broker allows; see `Patience`."""
        patience = Patience(threads, self._consumer_timeout, self._grace)
        problem = patience.problem([self._specs[name] for name in names])
        if problem:
            _refuse(f"{problem}; {WAY_OUT}")

    def declare(self, names: Sequence[str]) -> None:
        """Declare what the queues need; wait a while for a broker that is not up yet."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._declare_once(names)
                return
            except (TopologyError, WireRefused) as error:
                _refuse(str(error))
            except (WireError, ChannelClosed, OSError) as error:
                if isinstance(error, ChannelClosed) and error.code == _ACCESS_REFUSED:
                    _refuse(
                        f"expected the broker's user to be allowed to declare the kit's queues, got: {error}"
                    )
                if time.monotonic() > deadline:
                    _refuse(f"no broker after {_START_SECONDS:.0f} s: {error}", EXIT_CONNECTION)
                threading.Event().wait(_PAUSE_SECONDS)

    def _declare_once(self, names: Sequence[str]) -> None:
        wire = Wire(self._parameters, f"{self._name} start-up")
        try:
            for name in names:
                declare(wire, self._topologies[name])
        finally:
            wire.close()

    def check_policies(self, names: Sequence[str]) -> None:
        """Refuse policies that would drop or refuse jobs, and warn of queues with few members."""
        if self._management is None:
            return
        declared = [queue for name in names for queue in self._topologies[name].queues]
        try:
            conflicts = policy_conflicts(self._management.policies(), declared, self._consumer_timeout)
        except ManagementError as error:
            log.warning("startup.policies_not_checked", reason=str(error))
            return
        if conflicts:
            _refuse("; ".join(conflicts))
        _check_members(self._management, [queue.name for queue in declared])


def _check_members(management: Management, declared: Sequence[str]) -> None:
    try:
        nodes = management.nodes()
        few = few_members(management.queues(), declared, nodes)
    except ManagementError as error:
        log.info("startup.members_not_checked", reason=str(error))
        return
    if few:
        log.warning("startup.few_members", queues=few, nodes=nodes, advice="rabbitmq-queues grow NODE all")


def _refuse(text: str, code: int = EXIT_CONFIGURATION) -> NoReturn:
    logging.getLogger(__name__).critical("Refusing to start: %s", text)
    raise SystemExit(code)
