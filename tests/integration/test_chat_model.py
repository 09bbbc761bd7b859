"""What does each reply of a model's API lead to, and who gets to see its key?"""

from __future__ import annotations

import gzip
import json
import logging
import traceback
from contextlib import suppress

import pytest
from dramatiq.errors import Retry

from jobs.chats.model import LONGEST_REPLY, complete
from middleware import Invalid

from ..model_server import HANG_UP, Answer, ModelServer, said
from .application import Configure


def test_the_question_is_what_the_api_documents(model: ModelServer, configure: Configure) -> None:
    """Instructions and material are the system's and the user's message; the key is the bearer's."""
    configure(llm_key="sk-secret")
    model.answers = [said(" An answer.\n")]
    assert complete("do", "this") == "An answer."
    (request,) = model.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert request.body == {
        "model": "small",
        "messages": [{"role": "system", "content": "do"}, {"role": "user", "content": "this"}],
    }


def test_what_no_database_keeps_is_left_out(model: ModelServer) -> None:
    """A NUL and half a character, which JSON can carry, do not make a paid answer worthless."""
    model.answers = [said("one\0two \ud800")]
    assert complete("do", "this") == "onetwo ?"


def test_without_a_key_none_is_sent(model: ModelServer) -> None:
    """An API on one's own machine is asked without authorization."""
    complete("do", "this")
    assert "authorization" not in model.requests[0].headers


def test_throttling_is_retried_when_the_api_says(model: ModelServer) -> None:
    """429 leads to a retry after exactly the seconds of Retry-After."""
    model.answers = [Answer(429, headers={"Retry-After": "7"})]
    with pytest.raises(Retry, match="the model's API answers 429 Too Many Requests") as caught:
        complete("do", "this")
    assert caught.value.delay == 7000


@pytest.mark.parametrize("status", [408, 425, 500, 503])
def test_a_failing_api_is_retried_with_backoff(model: ModelServer, status: int) -> None:
    """5xx and a request that came too early or too slowly are retried: the backoff decides when."""
    model.answers = [Answer(status)]
    with pytest.raises(Retry, match=f"the model's API answers {status}") as caught:
        complete("do", "this")
    assert caught.value.delay is None


def test_a_connection_that_breaks_is_retried_with_backoff(model: ModelServer) -> None:
    """An API that hangs up, before or within its reply, is worth another attempt."""
    model.answers = [HANG_UP, Answer(200, b"{", {"Content-Length": "100", "Connection": "close"})]
    for _ in model.answers.copy():
        with pytest.raises(Retry, match="the model's API is not reached: RemoteProtocolError") as caught:
            complete("do", "this")
        assert caught.value.delay is None


def test_a_silent_api_is_given_up(model: ModelServer, configure: Configure) -> None:
    """An API that says nothing for JOBS_LLM_TIMEOUT is worth another attempt."""
    configure(llm_timeout="10ms")
    model.meanwhile = lambda: model.gone.wait(5)
    with pytest.raises(Retry, match="the model's API is not reached: ReadTimeout"):
        complete("do", "this")
    model.gone.set()


def test_an_api_that_is_not_there_is_retried(configure: Configure) -> None:
    """A refused connection is worth another attempt."""
    configure(llm_url="http://127.0.0.1:1")
    with pytest.raises(Retry, match="the model's API is not reached: ConnectError"):
        complete("do", "this")


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("header", [{"Content-Length": "100"}, {"Content-Encoding": "gzip"}])
def test_throttling_is_heard_whatever_follows(
    model: ModelServer, status: int, header: dict[str, str]
) -> None:
    """What counts of a reply that asks to wait is in its head: a broken or endless body hides nothing."""
    model.answers = [Answer(status, b"{}", {"Retry-After": "7", **header})]
    with pytest.raises(Retry, match=f"the model's API answers {status}") as caught:
        complete("do", "this")
    assert caught.value.delay == 7000


@pytest.mark.parametrize("status", [200, 401, 429, 503])
def test_a_connection_serves_many_questions(model: ModelServer, status: int) -> None:
    """Whatever the API answers, the next question goes over the same connection."""
    model.answers = [Answer(status, {"error": "x" * 100_000}), said("fine")]
    with suppress(Retry, Invalid, ValueError):
        complete("do", "this")
    assert complete("do", "this") == "fine"
    assert model.connections == 1


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_an_endless_reply_is_cut_off(model: ModelServer, encoding: str) -> None:
    """Of a reply, also of one that is small until it is unpacked, no more than a bounded part is read."""
    body = b" " * LONGEST_REPLY + json.dumps(said("late").body).encode()
    packed = gzip.compress(body) if encoding == "gzip" else body
    model.answers = [Answer(200, packed, {"Content-Encoding": encoding})]
    with pytest.raises(ValueError, match=f"more than {LONGEST_REPLY} bytes; does JOBS_LLM_URL") as caught:
        complete("do", "this")
    assert len(str(caught.value)) < 500


def test_a_reply_that_is_packed_badly_is_told(model: ModelServer) -> None:
    """A reply that says it is compressed and is not is an error that is retried."""
    model.answers = [Answer(200, b"{}", {"Content-Encoding": "gzip"})]
    with pytest.raises(ValueError, match="compress its reply properly"):
        complete("do", "this")


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_refused_request_is_invalid(model: ModelServer, status: int) -> None:
    """Any other 4xx is never retried, and keeps what the API said."""
    model.answers = [Answer(status, {"error": {"message": "no such model"}})]
    with pytest.raises(Invalid, match=f"the model's API answers {status} .*no such model"):
        complete("do", "this")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, b"<html>a portal</html>"),
        Answer(200, b"\xff\xfe"),
        Answer(200, []),
        Answer(200, {"choices": []}),
        Answer(200, {"choices": [{"message": {"content": None, "refusal": "no"}}]}),
        said("  "),
        Answer(204, b""),
        Answer(302, b"", {"Location": "https://example.com/"}),
    ],
    ids=["html", "bytes", "list", "no choice", "refusal", "blank", "empty", "redirect"],
)
def test_another_shape_is_told_as_it_came(model: ModelServer, answer: Answer) -> None:
    """A reply without a text is an error that is retried, and shows what came instead."""
    model.answers = [answer]
    with pytest.raises(ValueError, match="JOBS_LLM_URL") as caught:
        complete("do", "this")
    assert f"got: {answer.status}" in str(caught.value)


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_key_is_in_no_error_and_no_log(
    model: ModelServer, configure: Configure, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """Whatever the API answers, also one that quotes the key, the error's texts and the log do without it."""
    caplog.set_level(logging.DEBUG)
    configure(llm_key="sk-secret")
    model.answers = [Answer(status, {"error": {"message": "Incorrect API key provided: sk-secret."}})]
    with pytest.raises((Retry, Invalid, ValueError)) as caught:
        complete("do", "this")
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
    assert "the model" in told
    assert "sk-secret" not in told
