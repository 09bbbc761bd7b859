"""A job's way in: declared queue, allowed arguments, the checks of the middleware, a confirmed publish."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias

import dramatiq
from dramatiq import Message
from dramatiq.middleware import Middleware

from ..errors import NotEnqueued, PayloadError
from .awaiting import send_and_await
from .hooks import Hooks
from .outgoing import Outgoing
from .publication import Publication, Ticket
from .queues import Queue
from .sending import Outbound, send

_AT_ONCE: Final = 200
"""Messages that a coroutine checks before the event loop gets its turn."""

Taken: TypeAlias = list[Message[Any]]
"""The messages that carry the jobs: of a job that was submitted before, the first submission's."""


class EnqueueingBroker(dramatiq.Broker):
    """What sends jobs.

    Parameters:
        specs: the declared queues by name.
        middleware: the whole ordered list.
        outbound: takes publications.
        publish_timeout: a send ends within it, confirmed or with an error.
        max_delay: the longest delay a job may be sent with.
        payload_limit: bytes of JSON that a job's arguments may take.

    Attributes:
        levels: how many levels the queues' delay ladders have.
    """

    is_inline = False
    levels: int

    def __init__(
        self,
        *,
        specs: Mapping[str, Queue],
        middleware: list[Middleware],
        outbound: Outbound,
        publish_timeout: timedelta,
        max_delay: timedelta,
        payload_limit: int,
    ) -> None:
        self.specs = specs
        self._hooks = Hooks([])
        self._collecting = threading.local()
        self._publish_timeout = publish_timeout
        self._outgoing = Outgoing(specs, max_delay, payload_limit)
        self.use_outbound(outbound)
        super().__init__(middleware=middleware)
        self._hooks = Hooks(self.middleware)

    def use_outbound(self, outbound: Outbound) -> None:
        """Publish through `outbound` from now on."""
        self._outbound = outbound

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Publish a job and wait until the broker has it, or write it in the ledger's transaction.

        What a keyed actor sends while it runs is committed with its effect; see `Ledger.take`.

        Parameters:
            message: the job.
            delay: milliseconds until it is due; None or 0 means now.

        Returns:
            The message; of a job that was submitted before under its `job_id`, the first submission's.

        Raises:
            NotEnqueued: the job is certainly not stored; its subclasses say what is wrong with it.
            EnqueueUnknown: the job may be stored: repeat only with an idempotency key.
        """
        following = getattr(self._collecting, "messages", None)
        if following is None:
            return self.enqueue_many([message], delay_ms=delay)[0]
        self._follow(following, message, delay)
        return message

    def enqueue_many(
        self, messages: Sequence[Message[Any]], *, delay_ms: int | None = None
    ) -> list[Message[Any]]:
        """Publish many jobs at once; their confirms are pipelined.

        Parameters:
            messages: the jobs; all are checked before the first is published.
            delay_ms: milliseconds until they are due; None or 0 means now.

        Returns:
            The messages, all stored.

        Raises:
            NotEnqueued, EnqueueUnknown: as `enqueue`; `refused` and `unknown` list the jobs concerned.
        """
        messages = list(messages)
        publications: list[Publication] = []
        for _ in self._prepare(messages, delay_ms, publications):
            pass
        taken = self._taken("take", messages, publications, delay_ms)
        if taken is None and publications:
            self._begin_sending(messages)
            send(self._outbound, messages, publications, self._publish_timeout)
        messages = messages if taken is None else taken
        self._sent(messages, delay_ms)
        return messages

    async def enqueue_async(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Publish a job and await the broker's confirm, without blocking the event loop; see `enqueue`.

        A coroutine that is cancelled meanwhile does not know whether its job is stored. The middleware's
        `before_enqueue` and `after_enqueue` run on the event loop.
        """
        return (await self.enqueue_many_async([message], delay_ms=delay))[0]

    async def enqueue_many_async(
        self, messages: Sequence[Message[Any]], *, delay_ms: int | None = None
    ) -> list[Message[Any]]:
        """Publish many jobs at once and await the confirms; see `enqueue_many` and `enqueue_async`."""
        messages = list(messages)
        publications: list[Publication] = []
        for checked in self._prepare(messages, delay_ms, publications):
            if checked % _AT_ONCE == 0:
                await asyncio.sleep(0)
        taking = self._taken("take_async", messages, publications, delay_ms)
        with _Refusing(messages):
            taken = None if taking is None else await taking
        if taken is None and publications:
            if type(self).begin_sending is not EnqueueingBroker.begin_sending:
                await asyncio.to_thread(self._begin_sending, messages)
            await send_and_await(self._outbound, messages, publications, self._publish_timeout)
        messages = messages if taken is None else taken
        self._sent(messages, delay_ms)
        return messages

    def checked(self, messages: Sequence[Message[Any]], delay_ms: int | None) -> list[Publication]:
        """Return the publications of jobs that something else takes in the broker's place.

        Parameters:
            messages: the jobs; all are checked, and announced to the middleware, as for a send.
            delay_ms: milliseconds until they are due; None or 0 means now.

        Raises:
            NotEnqueued: as `enqueue`.
        """
        publications: list[Publication] = []
        for _ in self._prepare(list(messages), delay_ms, publications):
            pass
        return publications

    def announce(self, messages: Sequence[Message[Any]], delay_ms: int | None) -> None:
        """Announce to the middleware that jobs were taken."""
        self._sent(list(messages), delay_ms)

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Have publications published that were checked before; each ticket is told how it ended.

        Raises:
            NotEnqueued: none of them can be, now.
        """
        self.begin_sending()
        self._outbound.submit(tickets)

    def publication_of(self, message: Message[Any], delay_ms: int | None) -> Publication:
        """Return the publication of a message that was checked before."""
        return self._outgoing.publication(message, delay_ms)

    def _taken(
        self,
        hook: str,
        messages: list[Message[Any]],
        publications: list[Publication],
        delay_ms: int | None,
    ) -> Any:
        """Ask the middleware to take the jobs; None if none does, and they are to be published.

        Raises:
            NotEnqueued: they cannot be taken, or have a `job_id` that nobody looks at.
        """
        with _Refusing(messages):
            for _middleware, take in self._hooks.named(hook):
                taken = take(self, messages, publications, delay_ms)
                if taken is not None:
                    return taken
            if not self._hooks.named(hook) and any("job_id" in message.options for message in messages):
                raise NotEnqueued(
                    "expected a job with a job_id to be sent with a Ledger in the broker's middleware list, "
                    "got: none; add it, or leave job_id out"
                )
        return None

    def _prepare(
        self, messages: list[Message[Any]], delay_ms: int | None, publications: list[Publication]
    ) -> Iterator[int]:
        """Check all messages, then add their publications; yields the number of steps that are done."""
        with _Refusing(messages):  # one is wrong, none is stored
            for step, message in enumerate(messages, start=1):
                self._check(message)
                yield step
            for step, message in enumerate(messages, start=1):
                if self._hooks.named("before_enqueue"):
                    self.emit_before("enqueue", message, delay_ms)
                publications.append(self._outgoing.publication(message, delay_ms))
                yield step

    def _begin_sending(self, messages: list[Message[Any]]) -> None:
        with _Refusing(messages):
            self.begin_sending()

    def _sent(self, messages: list[Message[Any]], delay_ms: int | None) -> None:
        if self._hooks.named("after_enqueue"):
            for message in messages:
                self.emit_after("enqueue", message, delay_ms)

    def _follow(self, following: list[Any], message: Message[Any], delay_ms: int | None) -> None:
        """Collect what follows a job; what cannot be published raises now, while it can fail the job."""
        if "job_id" in message.options:
            raise PayloadError(
                f"actor {message.actor_name!r}: expected a job that follows another one to have no job_id, "
                f"got: {message.options['job_id']!r}; send it in the actor, with send_with_options(job_id=…)",
                refused=[message],
            )
        # Of any size: a callback carries the whole message that it follows.
        self._outgoing.check_form(message)
        for _middleware, check in self._hooks.named("check_message"):
            check(self, message)
        self.emit_before("enqueue", message, delay_ms)
        self._outgoing.publication(message, delay_ms)
        following.append((message, delay_ms))
        self.emit_after("enqueue", message, delay_ms)

    def _check(self, message: Message[Any]) -> None:
        self._outgoing.check(message, self.actors.get(message.actor_name))
        for _middleware, check in self._hooks.named("check_message"):
            check(self, message)

    def begin_sending(self) -> None:
        """Do what has to be done before the first job can be stored; raises NotEnqueued if that fails."""


class _Refusing:
    """Names all messages in what is raised about one of them."""

    __slots__ = ("_messages",)

    def __init__(self, messages: list[Message[Any]]) -> None:
        self._messages = messages

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, NotEnqueued):
            error.refused = self._messages
