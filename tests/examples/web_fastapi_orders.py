"""A FastAPI application that enqueues in its transactions: `uvicorn tests.examples.web_fastapi_orders:app`.

The answer comes after the commit, and the job is sent after that: a broker that is away delays no answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import dramatiq
from fastapi import Depends, FastAPI, HTTPException, status
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from jobs import charge_credit, store
from middleware import enqueue_async

from .web_orders import TASK, usage


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close the connections when the server stops."""
    yield
    dramatiq.get_broker().close()
    await store.dispose_async()


app = FastAPI(lifespan=lifespan)


async def transaction() -> AsyncIterator[AsyncSession]:
    """A request's transaction: committed if its handler returns, rolled back if it raises."""
    async with AsyncSession(store.async_engine) as session, session.begin():
        yield session


Transaction = Annotated[AsyncSession, Depends(transaction, scope="function")]


@app.post("/orders/{number}", status_code=status.HTTP_201_CREATED)
async def order(number: str, session: Transaction, cost: int = 1) -> dict[str, str]:
    """Record an order and have it charged."""
    try:
        async with session.begin_nested():  # a second order of that number undoes this part alone
            await session.execute(usage(number, cost))
            message = await enqueue_async(session, charge_credit.message(TASK, number))
    except IntegrityError:
        return {"job": "none: there is such an order"}
    return {"job": message.message_id}


@app.post("/orders/{number}/refused")
async def refused(number: str, session: Transaction) -> None:
    """Record an order, enqueue its charge, and find out that it cannot be."""
    await session.execute(usage(number, 1))
    await enqueue_async(session, charge_credit.message(TASK, number))
    raise HTTPException(status.HTTP_409_CONFLICT, "sold out")
