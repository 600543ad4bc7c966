"""Connections to one host: taken, kept, ended, and what TLS refuses."""

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway.core.errors import UpstreamRefused, UpstreamTimeout
from gateway.core.targets import Timeouts
from gateway.providers import connector as module
from gateway.providers.connection import Connection
from gateway.providers.connector import Connector
from tests.support.raw_server import raw_server

REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await reader.readexactly(len(REQUEST))
        writer.write(ANSWER)


@contextlib.asynccontextmanager
async def served(host: str = "127.0.0.1", tls: Path | None = None) -> AsyncIterator[Connector]:
    """A connector to a server, with the certificate and key in ``tls``."""
    context = None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls)
    async with raw_server(_serve, context) as port:
        made = Connector("t", urlsplit(f"http{'s' if tls else ''}://{host}:{port}/v1"))
        try:
            yield made
        finally:
            made.close()
            await asyncio.sleep(0)


async def use(connection: Connection) -> None:
    """One exchange."""
    await connection.send(REQUEST, Timeouts(), asyncio.get_running_loop().time() + 5)
    assert await connection.piece() == b"{}"


def certificate(folder: Path, name: str) -> Path:
    """A self-signed certificate for ``name``, and its key."""
    key, own = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout {key} -out {own} "
        f"-subj /CN={name} -addext subjectAltName=DNS:{name}".split(),
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_text(own.read_text() + key.read_text())
    return both


async def test_last_used_first() -> None:
    """The connection that was given back last is the next; a closed one never."""
    async with served() as connector:
        first, second = await connector.connect(1), await connector.connect(1)
        for connection in (first, second):
            await use(connection)
            connector.give_back(connection)
        assert connector.idle() is second
        first.abort()
        assert connector.idle() is None


async def test_what_was_not_read_to_its_end_is_closed() -> None:
    """Its rest would be the next caller's answer."""
    async with served() as connector:
        connection = await connector.connect(1)
        await connection.send(REQUEST, Timeouts(), asyncio.get_running_loop().time() + 5)
        connector.give_back(connection)
        assert not connection.kept
        assert connector.idle() is None


async def _ended(connection: Connection) -> None:
    async with asyncio.timeout(10):
        while connection.kept:  # noqa: ASYNC110 - a timer of its own
            await asyncio.sleep(0.01)


async def test_idle_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is closed when it has been idle for long, the ones in use are not."""
    monkeypatch.setattr(module, "KEEP_ALIVE_SECONDS", 1.0)
    async with served() as connector:
        first, second, busy = [await connector.connect(1) for _ in range(3)]
        for connection in (first, second):
            await use(connection)
            connector.give_back(connection)
            await asyncio.sleep(0.4)
        assert second.kept
        await _ended(first)
        assert second.kept
        await _ended(second)
        assert busy.kept


async def test_failures_have_their_own_errors() -> None:
    """No such host and nobody there are refusals, a connection without end is a timeout."""
    for place in ("http://nowhere.invalid", "http://127.0.0.1:1"):
        with pytest.raises(UpstreamRefused):
            await Connector("t", urlsplit(place)).connect(5)
    async with served() as connector:
        with pytest.raises(UpstreamTimeout) as caught:
            await connector.connect(0)
        assert caught.value.code == "connect_timeout"


async def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is trusted for the name is served; another name or issuer is refused."""
    mine = certificate(tmp_path, "localhost")
    async with served("localhost", mine) as connector:
        with pytest.raises(UpstreamRefused):
            await connector.connect(5)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    async with served("localhost", mine) as connector:
        await use(await connector.connect(5))
    async with served("127.0.0.1", mine) as connector:
        with pytest.raises(UpstreamRefused):
            await connector.connect(5)
