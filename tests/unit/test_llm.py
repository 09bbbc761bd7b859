from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from dramatiq.errors import Retry

from jobs import llm
from jobs.demo.provider import Provider, serve
from jobs.llm import ask_provider
from jobs.settings import get_settings
from middleware import Invalid


def forget_settings() -> None:
    get_settings.cache_clear()
    llm._client.cache_clear()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with serve() as provider:
        monkeypatch.setenv("JOBS_PROVIDER_URL", provider.url)
        monkeypatch.setenv("JOBS_PROVIDER_TIMEOUT", "200ms")
        forget_settings()
        yield provider
        llm._client().close()
        monkeypatch.undo()
        forget_settings()


def test_an_answer_ends_the_job(provider: Provider) -> None:
    """A prompt that is answered is asked once."""
    ask_provider("steady-1")
    assert provider.tally() == {"steady-1": {200: 1}}


def test_throttling_is_retried_when_the_provider_says(provider: Provider) -> None:
    """429 leads to a retry after exactly the seconds of Retry-After."""
    with pytest.raises(Retry, match="the provider answers 429 Too Many Requests") as caught:
        ask_provider("throttled-1")
    assert caught.value.delay == 1000


def test_a_failing_provider_is_retried_with_backoff(provider: Provider) -> None:
    """5xx leads to a retry without a delay of its own: the backoff decides."""
    with pytest.raises(Retry, match="the provider answers 500 Internal Server Error") as caught:
        ask_provider("flaky-1")
    assert caught.value.delay is None


def test_a_connection_that_breaks_raises(provider: Provider) -> None:
    """A provider that hangs up is a transport error, which is retried like any other exception."""
    with pytest.raises(httpx.TransportError):
        ask_provider("silent-1")


def test_a_refused_prompt_is_invalid(provider: Provider) -> None:
    """Any other 4xx is never retried, and keeps what the provider said."""
    with pytest.raises(Invalid, match=r"the provider answers 422 Unprocessable Entity: .*answer"):
        ask_provider("refused-1")


def test_a_prompt_id_is_one_segment_of_the_path(provider: Provider) -> None:
    """An id with slashes or dots does not reach another path of the provider."""
    with pytest.raises(Invalid, match="404"):
        ask_provider("../steady/1?x")
    assert list(provider.tally()) == ["..%2Fsteady%2F1%3Fx"]


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        (None, None),
        ("0", None),
        ("-5", None),
        ("7", 7000),
        ("soon", None),
        ("99999999999999999999", None),
        ("31536000", 30 * 24 * 3600 * 1000),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_with_caution(header: str | None, wait_ms: int | None) -> None:
    """Retry-After counts if it names a time to come, up to the longest delay that can be sent."""
    assert llm._retry_after_ms(header) == wait_ms


def test_retry_after_may_be_a_date() -> None:
    """A date is turned into the time until then."""
    wait_ms = llm._retry_after_ms(format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True))
    assert wait_ms is not None
    assert 85_000 < wait_ms <= 90_000
