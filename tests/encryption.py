"""How does a test encrypt? With a certificate of its own, and a server that speaks TLS before another."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest


def make_certificate(folder: Path) -> Path:
    """Return a file with a new certificate for 127.0.0.1 and its key; the same in `.crt` has no key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the command openssl")
    file = folder / "server.pem"
    words = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(
        [openssl, *words.split(), "-keyout", file, "-out", file.with_suffix(".crt")],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + file.with_suffix(".crt").read_text())
    return file


def server_context(certificate: Path) -> ssl.SSLContext:
    """Return what a server with this certificate encrypts with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@contextmanager
def encrypting(url: str, certificate: Path) -> Iterator[str]:
    """Yield the `amqps://` address at which a broker is reached with TLS while the block runs.

    Parameters:
        url: the broker's own address.
        certificate: as `make_certificate` returns it.
    """
    parts = urlsplit(url)
    loop = asyncio.new_event_loop()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_connection(parts.hostname, parts.port)
        ways = [
            asyncio.ensure_future(_pass_on(reader, broker_writer)),
            asyncio.ensure_future(_pass_on(broker_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (writer, broker_writer):
                each.transport.abort()
            await asyncio.gather(
                *ways, writer.wait_closed(), broker_writer.wait_closed(), return_exceptions=True
            )

    tls = server_context(certificate)
    server = loop.run_until_complete(asyncio.start_server(relay, "127.0.0.1", 0, ssl=tls))
    thread = threading.Thread(target=loop.run_forever, name="test-encrypting")
    thread.start()
    address = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield urlunsplit(parts._replace(scheme="amqps", netloc=address))
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def _end(server: asyncio.Server) -> None:
    server.close()
    relays = asyncio.all_tasks() - {asyncio.current_task()}
    for task in relays:
        task.cancel()
    await asyncio.gather(*relays, return_exceptions=True)
