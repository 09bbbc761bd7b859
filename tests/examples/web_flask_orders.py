"""A Flask application that enqueues in its transactions: `flask --app tests.examples.web_flask_orders run`.

The answer comes after the commit, and the job is sent after that: a broker that is away delays no answer.
"""

from __future__ import annotations

from typing import NoReturn

from flask import Flask, abort
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from jobs import charge_credit, store
from middleware import enqueue

from .web_orders import TASK, usage

app = Flask(__name__)
Scoped = scoped_session(sessionmaker(store.engine))
"""One session a request, as Flask applications have it."""


@app.teardown_appcontext
def end(error: BaseException | None) -> None:
    """Roll back what no handler has committed."""
    Scoped.remove()


@app.post("/orders/<number>")
def order(number: str) -> tuple[dict[str, str], int]:
    """Record an order and have it charged."""
    try:
        with Scoped.begin_nested():  # a second order of that number undoes this part alone
            Scoped.execute(usage(number, 1))
            message = enqueue(Scoped, charge_credit.message(TASK, number))
    except IntegrityError:
        return {"job": "none: there is such an order"}, 201
    Scoped.commit()
    return {"job": message.message_id}, 201


@app.post("/orders/<number>/refused")
def refused(number: str) -> NoReturn:
    """Record an order, enqueue its charge, and find out that it cannot be."""
    Scoped.execute(usage(number, 1))
    enqueue(Scoped, charge_credit.message(TASK, number))
    abort(409, "sold out")


@app.post("/orders/<number>/joined")
def joined(number: str) -> tuple[dict[str, str], int]:
    """Do the same in a session that joins a transaction which somebody else commits."""
    with store.engine.begin() as connection:
        connection.execute(usage(number, 1))
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            message = enqueue(session, charge_credit.message(TASK, number))
            session.commit()
    return {"job": message.message_id}, 201
