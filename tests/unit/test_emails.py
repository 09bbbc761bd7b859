"""Which addresses, texts and servers make an email, and which are refused?"""

from __future__ import annotations

import pytest

from jobs.mail.emails import compose, message_id
from jobs.mail.mailboxes import mailbox, read_mailbox
from jobs.mail.smtp import MailServer, read_server


@pytest.mark.parametrize(
    "address",
    [
        "a@b",
        "ada.l+shop@mail.example.com",
        "o'hara@example.com",
        "zoë@müller.example",
        f"{'a' * 242}@example.com",
    ],
)
def test_an_address_is_a_name_at_a_domain(address: str) -> None:
    """Ordinary addresses pass as they are, in any script."""
    assert mailbox(address).addr_spec == address


@pytest.mark.parametrize(
    "address",
    [
        *("", "a", "@b", "a@", "a@b@c", "a b@c", "a@b c", "a@b\n", "a@b\r\nBcc: c@d", "a@b,c@d", "a@b; c@d"),
        *("<a@b>", "a <a@b>", '"a"@b', "a(x)@b", ".a@b", "a..b@c", "a@-b", "a@b..c", "a@[127.0.0.1]"),
        f"{'a' * 243}@example.com",
    ],
)
def test_anything_else_is_refused(address: str) -> None:
    """What could be read as two addresses, as a command or as a header is no address."""
    with pytest.raises(ValueError, match=r"expected an address to be name@domain, got: "):
        mailbox(address)


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\n", "a\x0bb", "a\x00", "a\x85b", "a\u2028b", "a\ud800"])
def test_a_name_is_one_line(name: str) -> None:
    """No kind of line break, control character or half character gets into a header."""
    with pytest.raises(ValueError, match="expected a name to be one line without control characters"):
        mailbox("a@b", name)


@pytest.mark.parametrize(
    "text", ["Jobs", "Jobs jobs@example.com", "a@b <c@d> e", "A <a@b>, B <c@d>", "<a@b", "A\nB <a@b>"]
)
def test_a_sender_is_one_mailbox(text: str) -> None:
    """A setting that names nobody, or several, is refused."""
    with pytest.raises(ValueError, match="expected"):
        read_mailbox(text)


def test_words_stand_for_values() -> None:
    """`$words` are filled in, `$$` is a dollar, and what a value holds is not looked at again."""
    email = compose(
        sender=mailbox("a@b"),
        recipient=mailbox("c@d"),
        subject="$what for $$5",
        body="${what}s, $many",
        values={"what": "$many", "many": 3},
    )
    assert str(email["Subject"]) == "$many for $5"
    assert email.get_content() == "$manys, 3\n"


def test_message_ids_differ_where_jobs_differ() -> None:
    """No two jobs share a Message-ID, whatever their ids contain."""
    keys = ["email:a:b:c", "email:a%3Ab:c:d", "email:a:b:d", "email:b:a:c"]
    assert len({message_id(key, domain="x") for key in keys}) == len(keys)
    assert message_id('\n"<>ünï', domain="x").isprintable()


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail", MailServer("mail", 25, "smtp")),
        ("smtp://mail:2525/", MailServer("mail", 2525, "smtp")),
        ("smtp://me:pw@mail?starttls", MailServer("mail", 587, "starttls", "me", "pw")),
        ("smtps://m%40e:p%3Aw@mail", MailServer("mail", 465, "smtps", "m@e", "p:w")),
    ],
)
def test_a_url_names_a_server(url: str, server: MailServer) -> None:
    """Scheme and `?starttls` say how it is encrypted, and which port is meant where none is named."""
    assert read_server(url) == server


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "mail",
            "mail:25",
            "http://mail",
            "smtp://",
            "smtp://mail:0",
            "smtp://mail:99999",
            "smtp://me@mail",
        ),
        *(
            "smtp://mail/path",
            "smtp://mail?tls",
            "smtp://mail?starttls=1",
            "smtps://mail?starttls",
            "smtp://mail#x",
            "smtp://zo%C3%AB:pw@mail",
            "smtps://me:gro%C3%9F@mail",
            "smtps://me:%FF@mail",
        ),
    ],
)
def test_any_other_url_is_refused(url: str) -> None:
    """A URL with something in it that would not be heeded, or that no login can carry, is a mistake."""
    with pytest.raises(ValueError, match=r"another scheme|without a password|beyond ASCII|Port"):
        read_server(url)


@pytest.mark.parametrize(
    "text", ["=?utf-8?q?a=0D=0ABcc:_e@x.y?=", "=?utf-8?q?Admin=22_=3Cb=40c=3E=2C?=", "a =?x"]
)
def test_an_encoded_word_is_refused(text: str) -> None:
    """What Python's `email` would decode into line breaks or other recipients stands in no header."""
    with pytest.raises(ValueError, match="encoded word"):
        mailbox("a@b", text)
    with pytest.raises(ValueError, match="encoded word"):
        compose(sender=mailbox("a@b"), recipient=mailbox("c@d"), subject=text, body="", values={})
    with pytest.raises(ValueError, match="encoded word"):
        compose(sender=mailbox("a@b"), recipient=mailbox("c@d"), subject="$v", body="", values={"v": text})
