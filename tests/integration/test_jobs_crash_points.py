"""Does the effect of each actor that is shipped take place once, wherever its worker dies?"""

from __future__ import annotations

from typing import Any

import pytest
from dramatiq import Actor
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from jobs import charge_credit, index_resource, send_email, summarize_chat
from jobs.chats import summaries
from jobs.mail import emails
from jobs.models import Account, Chat, ChatMessage, ChatSummary, CreditEntry, Resource, ResourceEntry, Usage
from jobs.resources import full_text, indexing

from ..mail_server import serve_mail
from ..model_server import ModelServer
from .application import Configure, redeclare
from .crash_jobs import DEF, check
from .keyed_jobs import KeyedJobs
from .mail_rows import write_mail

pytestmark = [DEF, pytest.mark.slow]


@pytest.fixture
def declare(hasty_jobs: KeyedJobs, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Declare an actor on the test's database in place of the application's."""

    def on_this_database(actor: Actor[..., Any]) -> Actor[..., Any]:
        for module in (summaries, full_text, indexing, emails):
            monkeypatch.setattr(module, "store", hasty_jobs.store)
        return redeclare(hasty_jobs, actor)

    return on_this_database


def replace(session: Session, *rows: Any) -> None:
    """Make these the only rows of their tables."""
    for kind in {type(row) for row in rows}:
        session.execute(delete(kind))
    session.add_all(rows)


def test_charge_credit(declare: Any) -> None:
    """One entry, and as much taken from the balance, whatever happens."""

    def prepare(session: Session) -> None:
        session.execute(delete(CreditEntry))
        replace(
            session, Account(id="a", balance=10), Usage(task_id="t", message_id="m", account_id="a", cost=2)
        )

    def charges(session: Session) -> int:
        taken = 10 - session.scalars(select(Account.balance)).one()
        assert taken == 2 * session.scalars(select(func.count()).select_from(CreditEntry)).one()
        return taken // 2

    tried = check(declare(charge_credit), "t", "m", prepare=prepare, effect=charges)
    assert len([words for words in tried if words.startswith("a crash ")]) == 10


def test_summarize_chat(declare: Any, model: ModelServer) -> None:
    """One summary; the model may be asked again, as nothing was written before its answer."""

    def prepare(session: Session) -> None:
        session.execute(delete(ChatSummary))
        replace(
            session, Chat(id="c", title="Chat"), ChatMessage(chat_id="c", position=1, author="a", text="Hi.")
        )

    def written(session: Session) -> int:
        return session.scalars(select(func.count()).select_from(ChatSummary)).one()

    check(declare(summarize_chat), "c", 1, prepare=prepare, effect=written)
    assert model.requests


def test_index_resource(declare: Any) -> None:
    """One entry of the version."""

    def prepare(session: Session) -> None:
        session.execute(delete(ResourceEntry))
        replace(session, Resource(id="r", version=1, title="Guide", body="How to install it"))

    def indexed(session: Session) -> int:
        newest = select(func.count()).where(ResourceEntry.version == 1)
        return session.scalars(newest).one()

    check(declare(index_resource), "r", 1, prepare=prepare, effect=indexed)


def test_send_email(declare: Any, hasty_jobs: KeyedJobs, configure: Configure) -> None:
    """The server accepts one email, or the job is a dead letter that says that nobody knows."""
    write_mail(hasty_jobs.store)
    with serve_mail() as server:
        configure(smtp_url=f"smtp://{server.address}", mail_from="The Shop <shop@example.com>")
        check(declare(send_email), "u", "t", "e", prepare=None, effect=lambda session: len(server.accepted))
    letters = hasty_jobs.broker.dead_letters("jobs")
    assert {letter.headers["jobs-kind"] for letter in letters} == {"unknown_outcome"}
