"""What does a language model make of a text? Asked over an OpenAI-compatible HTTP API."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Final

import httpx
from dramatiq.errors import Retry

from middleware import Invalid

from ..settings import get_settings

_NOT_NOW: Final = (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_EARLY, httpx.codes.TOO_MANY_REQUESTS)
_SHOWN: Final = 200
"""Characters kept of a reply that is no answer."""
LONGEST_REPLY: Final = 1_048_576
"""Bytes that are read of a reply; what was asked for takes some thousands."""


def complete(instructions: str, material: str) -> str:
    """Return the model's answer.

    Parameters:
        instructions: what to do, the system message.
        material: what to do it with, the user message.

    Raises:
        Retry: the API throttles (429) or fails (5xx): again when its Retry-After says, or with backoff. It is
            not reached, breaks off, or is silent for JOBS_LLM_TIMEOUT: again with backoff.
        Invalid: it refuses the request (another 4xx).
        ValueError: its reply is not what it documents.
    """
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": material}]
    request = {"model": get_settings().llm_model, "messages": messages}
    try:
        with _client().stream("POST", "chat/completions", json=request) as reply:
            answer = f"the model's API answers {reply.status_code} {reply.reason_phrase}"
            if reply.is_server_error or reply.status_code in _NOT_NOW:
                with suppress(httpx.HTTPError, ValueError):  # its end keeps the connection, and hides nothing
                    _read(reply)
                raise Retry(answer, delay=_retry_after_ms(reply.headers.get("retry-after")))
            body = _read(reply)
    except httpx.TransportError as error:
        raise Retry(f"the model's API is not reached: {type(error).__name__}: {error}"[:_SHOWN]) from error
    if reply.is_client_error:
        raise Invalid(f"{answer}: {_shown(body)}")
    return _content(reply.status_code, body)


@cache
def _client() -> httpx.Client:
    """Return the process's one client: it keeps connections and is safe to share between threads."""
    settings = get_settings()
    timeout = httpx.Timeout(settings.llm_timeout.total_seconds())
    timeout.connect = settings.llm_connect_timeout.total_seconds()
    key = settings.llm_key
    headers = {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}
    return httpx.Client(base_url=settings.llm_url or "", headers=headers, timeout=timeout)


def _read(reply: httpx.Response) -> bytes:
    """Return the reply's body; of one beyond `LONGEST_REPLY` that and a byte: none may fill the memory."""
    body = bytearray()
    try:
        for part in reply.iter_bytes():
            body += part
            if len(body) > LONGEST_REPLY:
                break
    except httpx.DecodingError as error:
        raise ValueError(f"expected the model's API to compress its reply properly, got: {error}") from error
    return bytes(body[: LONGEST_REPLY + 1])


def _content(status: int, body: bytes) -> str:
    """Return the answer's text.

    Source: https://platform.openai.com/docs/api-reference/chat/object
    """
    try:
        content: Any = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        content = None
    if isinstance(content, str):  # without what JSON carries and PostgreSQL refuses: asking again costs money
        content = content.encode("utf-8", "replace").decode().replace("\0", "")
    if not isinstance(content, str) or not content.strip():
        much = f" and more than {LONGEST_REPLY} bytes" if len(body) > LONGEST_REPLY else ""
        raise ValueError(
            'expected the model\'s API to answer {"choices": [{"message": {"content": "a text"}}]}, '
            f"got: {status} {_shown(body)!r}{much}; does JOBS_LLM_URL name an OpenAI-compatible API?"
        )
    return content.strip()


def _shown(body: bytes) -> str:
    """Return a reply's beginning; an API that refuses a key may quote it."""
    key = get_settings().llm_key
    text = body.decode("utf-8", "replace")
    return (text if key is None else text.replace(key.get_secret_value(), "***"))[:_SHOWN]


def _retry_after_ms(header: str | None) -> int | None:
    """Return what Retry-After asks for, seconds or a date, in milliseconds; None if it says nothing.

    Source: RFC 9110, section 10.2.3.
    """
    if header is None or not header.isascii():  # Python would read other scripts' digits as well
        return None
    try:
        wait = timedelta(seconds=int(header)) if header.strip().isdigit() else _until(header)
    except (ValueError, OverflowError):  # more digits than Python reads, or than a timedelta holds
        return None
    longest = get_settings().max_delay
    return int(min(wait, longest) / timedelta(milliseconds=1)) if wait > timedelta(0) else None


def _until(date: str) -> timedelta:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return timedelta(0)
    return moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)
