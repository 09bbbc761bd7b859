"""Slow calls to a model provider, which fails and throttles at times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Final
from urllib.parse import quote

import dramatiq
import httpx
from dramatiq.errors import Retry

from middleware import Invalid

from .settings import get_settings

_NOT_NOW: Final = (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_EARLY, httpx.codes.TOO_MANY_REQUESTS)


@dramatiq.actor(queue_name="llm")
def ask_provider(prompt_id: str) -> None:
    """Have the provider answer a prompt.

    Parameters:
        prompt_id: names the prompt; its text stays where it is stored.

    Raises:
        Retry: the provider throttles (429) or fails (5xx): again when its Retry-After says, or with backoff.
        httpx.TransportError: it cannot be reached, or not in time: retried with backoff.
        Invalid: it refuses the prompt (another 4xx): never retried.
    """
    reply = _client().post(f"/prompts/{quote(prompt_id, safe='')}")
    answer = f"the provider answers {reply.status_code} {reply.reason_phrase}"
    if reply.is_server_error or reply.status_code in _NOT_NOW:
        raise Retry(answer, delay=_retry_after_ms(reply.headers.get("retry-after")))
    if reply.is_client_error:
        raise Invalid(f"{answer}: {reply.text[:200]}")
    reply.raise_for_status()


@cache
def _client() -> httpx.Client:
    """Return the process's one client: it keeps connections and is safe to share between threads."""
    settings = get_settings()
    timeout = httpx.Timeout(settings.provider_timeout.total_seconds())
    timeout.connect = settings.provider_connect_timeout.total_seconds()
    return httpx.Client(base_url=settings.provider_url, timeout=timeout)


def _retry_after_ms(header: str | None) -> int | None:
    """Return what Retry-After asks for, seconds or a date, in milliseconds; None if it says nothing.

    Source: RFC 9110, section 10.2.3.
    """
    if header is None:
        return None
    try:
        wait = timedelta(seconds=int(header))
    except (ValueError, OverflowError):
        wait = _until(header)
    longest = get_settings().max_delay
    return int(min(wait, longest) / timedelta(milliseconds=1)) if wait > timedelta(0) else None


def _until(date: str) -> timedelta:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return timedelta(0)
    return moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)
