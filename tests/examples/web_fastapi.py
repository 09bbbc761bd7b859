"""A web application that enqueues a job from a request: `uvicorn tests.examples.web_fastapi:app`.

An answer of 202 says that the broker has the job on disk; anything else says what is certain instead.
`make venv-dev` brings FastAPI and uvicorn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dramatiq
from fastapi import FastAPI, Request, status
from fastapi.responses import JSONResponse

from jobs import charge_credit, store
from middleware import EnqueueUnknown, NotEnqueued, PayloadError, send_async


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close the publisher's connection when the server stops."""
    yield
    dramatiq.get_broker().close()
    store.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/charges/{task_id}/{message_id}", status_code=status.HTTP_202_ACCEPTED)
async def charge(task_id: str, message_id: str) -> dict[str, str]:
    """Have a usage charged."""
    message = await send_async(charge_credit, task_id, message_id)
    return {"job": message.message_id}


@app.get("/alive")
async def alive() -> dict[str, bool]:
    """Answer at once, whatever the broker does."""
    return {"alive": True}


@app.exception_handler(NotEnqueued)
async def not_stored(request: Request, error: Exception) -> JSONResponse:
    """Certainly not stored: the client may send it again."""
    return _refusal(status.HTTP_503_SERVICE_UNAVAILABLE, "not stored", error)


@app.exception_handler(PayloadError)
async def not_acceptable(request: Request, error: Exception) -> JSONResponse:
    """Certainly not stored, and it never will be."""
    return _refusal(status.HTTP_422_UNPROCESSABLE_CONTENT, "not acceptable", error)


@app.exception_handler(EnqueueUnknown)
async def perhaps_stored(request: Request, error: Exception) -> JSONResponse:
    """May be stored: this actor has an idempotency key, so the client may send it again all the same."""
    return _refusal(status.HTTP_503_SERVICE_UNAVAILABLE, "unknown", error)


def _refusal(code: int, state: str, error: Exception) -> JSONResponse:
    headers = {"Retry-After": "2"} if code == status.HTTP_503_SERVICE_UNAVAILABLE else {}
    return JSONResponse({"state": state, "detail": str(error)}, code, headers)
