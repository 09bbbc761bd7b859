"""What does each answer of a mail server, and each break of its connection, mean for the email's job?"""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.headerregistry import Address
from email.message import EmailMessage
from pathlib import Path

import pytest
from dramatiq.errors import Retry
from dramatiq.middleware import TimeLimitExceeded

from jobs.mail.emails import compose
from jobs.mail.mailboxes import mailbox
from jobs.mail.smtp import deliver, read_server
from middleware import Invalid, NotDone

from ..encryption import make_certificate, server_context
from ..mail_server import BREAK_OFF, serve_mail
from ..waiting import wait_until


def an_email(*, to: Address | None = None, name: str = "Ada", body: str = "Hello $name") -> EmailMessage:
    """Return an email to Ada."""
    return compose(
        sender=mailbox("shop@example.com"),
        recipient=to or mailbox("ada@example.com", name),
        subject="Hello $name",
        body=body,
        values={"name": name},
    )


def send(url: str, email: EmailMessage | None = None) -> None:
    """Deliver an email to the server that a URL names, which has a second for each answer."""
    deliver(email or an_email(), read_server(url), timeout_seconds=1)


@pytest.mark.parametrize("step", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        ("550 no such user", Invalid),
        ("554-no\r\n554 more of this", Invalid),
        ("450 come again", NotDone),
        ("421 closing", NotDone),
        ("530 authentication required", NotDone),
        ("gibberish", Retry),
        ("550 " + "no such user" * 1000, Retry),
        (BREAK_OFF, Retry),
    ],
)
def test_an_answer_about_the_email_decides(step: str, answer: str, meaning: type[Exception]) -> None:
    """5xx to sender, recipient or text is final, 4xx and a login asked for are not.

    Noise and a break leave open whether the email was accepted, once the server has got its text.
    """
    if meaning is Retry and step != "DATA":
        meaning = NotDone
    with serve_mail() as server:
        server.answers[step] = [answer]
        with pytest.raises(meaning) as caught:
            send(f"smtp://{server.address}")
        assert type(caught.value) is meaning
        assert "the mail server" in str(caught.value)
        assert server.accepted == []


@pytest.mark.parametrize("answer", ["200 done", "251-accepted\r\n251 and forwarded", "299"])
def test_an_email_that_was_accepted_in_other_words_is_not_sent_again(answer: str) -> None:
    """Any 2xx to the text is a yes: taken for a no, each attempt would bring the recipient another copy."""
    with serve_mail() as server:
        server.answers["DATA"] = [answer]
        send(f"smtp://{server.address}")
        assert len(server.accepted) == 1


@pytest.mark.parametrize("answer", ["421 gone", "500 what?", BREAK_OFF])
def test_a_goodbye_that_goes_wrong_fails_nothing(answer: str) -> None:
    """After the server accepted the email nothing fails its job: it would be sent twice."""
    with serve_mail() as server:
        server.answers["QUIT"] = [answer]
        send(f"smtp://{server.address}")
        assert len(server.accepted) == 1


@contextmanager
def greeting(text: bytes) -> Iterator[str]:
    """Listen, greet whoever connects, and say no more; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(text)
                connection.recv(1)  # what the client says, or that it is gone

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"554 no service for you\r\n", "the mail server answers 554 no service for you"),
        (b"421 too many connections\r\n", "the mail server answers 421 too many connections"),
        (b"220 hello\r\n", "the mail server is not reached: "),
        (
            b"",
            "the mail server is not reached: SMTPServerDisconnected: ",
        ),
    ],
)
def test_a_session_that_does_not_come_about_is_retried(text: bytes, why: str) -> None:
    """Whatever a server says before it has heard of the email says nothing about the email."""
    with greeting(text) as address, pytest.raises(NotDone) as caught:
        send(f"smtp://{address}")
    assert str(caught.value).startswith(why)


def test_a_server_that_is_not_there_is_retried() -> None:
    """A refused connection and an unknown host are worth another attempt."""
    with pytest.raises(NotDone, match="ConnectionRefusedError"):
        send("smtp://127.0.0.1:1")
    with pytest.raises(NotDone, match="gaierror"):
        send("smtp://nowhere.invalid:25")


def test_any_server_takes_the_text() -> None:
    """Names and texts in any script and lines of any length travel as short lines of ASCII."""
    email = an_email(name="Zoë Müller", body="$name: " + "long 😀 " * 400 + "\n.\nQUIT\n")
    with serve_mail() as server:
        send(f"smtp://{server.address}", email)
    (body,) = server.bodies
    assert body.isascii()
    assert max(len(line) for line in body.splitlines()) < 998
    (got,) = server.accepted
    assert str(got["To"]) == "Zoë Müller <ada@example.com>"
    assert str(got["Subject"]) == "Hello Zoë Müller"
    assert got.get_content().splitlines() == ["Zoë Müller: " + "long 😀 " * 400, ".", "QUIT"]


def test_an_address_that_the_server_cannot_take_is_invalid() -> None:
    """An address beyond ASCII is sent to servers that say they know such addresses, and to no others."""
    with serve_mail() as server, pytest.raises(Invalid, match="takes no such address"):
        send(f"smtp://{server.address}", an_email(to=mailbox("zoë@example.com")))
    assert server.accepted == []


# --- TLS and passwords ---

# aiosmtpd's own warning to those who run it in earnest.
ASKS_FOR_A_PASSWORD = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 with its key, in one file."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """What a server encrypts with."""
    return server_context(certificate)


@ASKS_FOR_A_PASSWORD
@pytest.mark.parametrize("url", ["smtp://me:p%40ss@{}?starttls", "smtps://me:p%40ss@{}"])
def test_an_encrypted_session_with_a_password(
    monkeypatch: pytest.MonkeyPatch, certificate: Path, tls: ssl.SSLContext, url: str
) -> None:
    """With STARTTLS as with TLS from the start, user and password of the URL log in and the email is sent."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    with serve_mail(tls=tls, implicit_tls=url.startswith("smtps"), passwords={b"me": b"p@ss"}) as server:
        send(url.format(server.address))
    assert server.logins == [(b"me", b"p@ss")]
    assert len(server.accepted) == 1


@ASKS_FOR_A_PASSWORD
@pytest.mark.parametrize("url", ["smtp://me:p%40ss@{}?starttls", "smtps://me:p%40ss@{}"])
def test_a_certificate_that_nobody_vouches_for_ends_the_session(tls: ssl.SSLContext, url: str) -> None:
    """A server whose certificate is not trusted gets neither password nor email."""
    with serve_mail(tls=tls, implicit_tls=url.startswith("smtps"), passwords={b"me": b"p@ss"}) as server:
        with pytest.raises(NotDone, match="CERTIFICATE_VERIFY_FAILED"):
            send(url.format(server.address))
        assert (server.logins, server.accepted) == ([], [])


@ASKS_FOR_A_PASSWORD
def test_nothing_is_sent_in_the_clear_where_starttls_is_asked_for() -> None:
    """A server that offers no STARTTLS, or whose offer is cut out, gets no password and no email."""
    with serve_mail(passwords={b"me": b"s3cret"}) as server:
        with pytest.raises(NotDone, match="STARTTLS"):
            send(f"smtp://me:s3cret@{server.address}?starttls")
        assert (server.logins, server.accepted) == ([], [])


@ASKS_FOR_A_PASSWORD
def test_a_wrong_password_is_retried_and_not_shown() -> None:
    """A refused login is the deployment's fault: no email dies of it, and no error tells the password."""
    with serve_mail(passwords={b"me": b"right"}) as server:
        with pytest.raises(NotDone, match="the mail server answers 535") as caught:
            send(f"smtp://me:s3cret@{server.address}")
        wait_until(lambda: server.logins, what="the login")
    assert (
        "s3cret"
        not in f"{caught.value!r} {caught.value.__cause__!r} {read_server('smtp://me:s3cret@host')!r}"
    )


@ASKS_FOR_A_PASSWORD
@pytest.mark.parametrize(
    ("step", "url"),
    [
        ("starttls", "smtp://me:pw@{}?starttls"),
        ("login", "smtp://me:pw@{}"),
        ("send_message", "smtp://{}"),
    ],
)
def test_an_interrupted_session_is_closed(monkeypatch: pytest.MonkeyPatch, step: str, url: str) -> None:
    """A time limit that ends the job amid TLS, the login or the email leaves no connection open."""
    connections: list[smtplib.SMTP] = []

    def interrupt(connection: smtplib.SMTP, *_args: object, **_options: object) -> None:
        assert connection.sock is not None
        connections.append(connection)
        raise TimeLimitExceeded

    monkeypatch.setattr(smtplib.SMTP, step, interrupt)
    with serve_mail() as server, pytest.raises(TimeLimitExceeded):
        send(url.format(server.address))
    assert [connection.sock for connection in connections] == [None]
