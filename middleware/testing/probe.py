"""What must an actor not do while its ledger transaction is open?

Open sockets, use other engines, send from other threads. A socket or another engine is an effect that the
commit does not hold together with the key, and keeps the transaction open for as long as somebody else takes;
a send from another thread is no part of it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from dramatiq import Message
from dramatiq.middleware import Middleware
from sqlalchemy import Pool, event

from ..effects.session import current
from ..effects.transaction import LedgerTransaction
from ..errors import LedgerViolation
from ..transport.broker import JobBroker

_hooking: Final = threading.Lock()
_watching: Final[list[Probe]] = []
_borrowed: Final = threading.local()
"""Of a pool's thread: the transaction from which its work was submitted."""
_hooked = False


class Probe:
    """Watches what actors do while their transaction is open.

    Attributes:
        is_on: whether it watches at all. Defaults to True.
    """

    def __init__(self) -> None:
        self.is_on = True
        self._seen: LedgerViolation | None = None

    @contextmanager
    def watching(self, broker: JobBroker) -> Iterator[None]:
        """Watch what the broker's actors do while the block runs."""
        if not self.is_on:
            yield
            return
        _hook()
        sends = _Sends(self)
        broker.middleware.append(sends)
        broker._hooks.forget()
        event.listen(Pool, "checkout", self._checked_out)
        _watching.append(self)
        try:
            yield
        finally:
            _watching.remove(self)
            event.remove(Pool, "checkout", self._checked_out)
            broker.middleware.remove(sends)
            broker._hooks.forget()

    def check(self) -> None:
        """Raise what was seen since the last check.

        Raises:
            LedgerViolation: an actor did what it must not.
        """
        seen, self._seen = self._seen, None
        if seen is not None:
            raise seen

    def refuse(self, transaction: LedgerTransaction, what: str, way_out: str) -> NoReturn:
        """Fail the attempt, even if the actor swallows what is raised.

        Raises:
            LedgerViolation: always.
        """
        violation = LedgerViolation(
            "expected an actor to use nothing but its session while its ledger transaction is open, got: "
            f"{what}; {way_out}"
        )
        self._seen = self._seen or violation
        transaction._violation = violation
        raise violation

    def connected(self, address: object) -> None:
        """Be told of a socket that connects."""
        transaction = _open(current.get())
        if transaction is not None:
            self.refuse(
                transaction,
                f"a socket to {address!r}",
                'call before or after it, in an actor with effect="late" or effect="external"',
            )

    def _checked_out(self, _connection: Any, _record: Any, _proxy: Any) -> None:
        transaction = _open(current.get())
        if transaction is not None:
            self.refuse(
                transaction,
                "a connection of another engine, or a second one of the same",
                "read and write with current_session(), whose commit holds it together with the key",
            )


class _Sends(Middleware):
    """Looks at who sends."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def check_message(self, broker: JobBroker, message: Message[Any]) -> None:
        thread = threading.current_thread()
        found = getattr(_borrowed, "transaction", None) or getattr(thread, "_jobs_transaction", None)
        transaction = _open(found)
        if transaction is not None:
            self._probe.refuse(
                transaction,
                f"a send of {message.actor_name!r} from the thread {thread.name!r}, which is not its own",
                "send from the actor's own thread, so that the job is sent if it commits and not otherwise",
            )


def _open(transaction: LedgerTransaction | None) -> LedgerTransaction | None:
    return None if transaction is None or transaction.ending else transaction


def _hook() -> None:
    """Begin to listen, once for the process: an audit hook cannot be taken back."""
    global _hooked
    with _hooking:
        if not _hooked:
            _hooked = True
            sys.addaudithook(_audit)
            ThreadPoolExecutor.submit = _submitting(ThreadPoolExecutor.submit)  # type: ignore[method-assign]
            setattr(threading.Thread, "start", _starting(threading.Thread.start))  # noqa: B010  # of a method


def _audit(name: str, args: tuple[Any, ...]) -> None:
    if _watching and name == "socket.connect":
        for probe in list(_watching):
            probe.connected(args[1])


def _starting(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def start_noted(thread: threading.Thread) -> None:
        if _watching:
            thread._jobs_transaction = _open(current.get())  # type: ignore[attr-defined]  # read by `_Sends`
        start(thread)

    return start_noted


def _submitting(submit: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    def submit_noted(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        transaction = _open(current.get()) if _watching else None
        if transaction is None:
            return submit(pool, function, *args, **kwargs)

        def call(*args: Any, **kwargs: Any) -> Any:
            _borrowed.transaction = transaction
            try:
                return function(*args, **kwargs)
            finally:
                _borrowed.transaction = None

        return submit(pool, call, *args, **kwargs)

    return submit_noted
