"""What a connection may send before anybody is known to be behind it."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import orjson
import pytest
from starlette.types import Receive, Scope, Send

from gateway.bootstrap.listen import listen
from gateway.bootstrap.server import GatewayServer
from tests.support.contract import checked

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
PIECE = b"a" * 2**16


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the method and the body; for /never nothing, for /names the headers' names."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    if scope["path"] == "/never":
        await asyncio.Event().wait()
    if scope["path"] == "/endless":
        await pour(receive, send)
        return
    if scope["path"] == "/names":
        body = b",".join(name for name, _ in scope["headers"])
    body = scope["method"].encode() + b" " + body
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def pour(receive: Receive, send: Send) -> None:
    """An answer until the caller goes; POURED counts its bytes."""
    POURED.clear()
    gone = asyncio.ensure_future(receive())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while not gone.done():
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        POURED.append(len(PIECE))
        await asyncio.sleep(0)


POURED: list[int] = []


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """The port of a server with half a second for a head."""
    listener = listen("127.0.0.1", 0)
    server = GatewayServer(echo, log_level="error", receive_seconds=0.5, send_seconds=0.5)
    serving = asyncio.create_task(server.serve([listener]))
    yield listener.getsockname()[1]
    server.should_exit = True
    await serving


async def answer(port: int, *pieces: bytes, pause: float = 0.0) -> tuple[int, bytes, float]:
    """Status (0: none), body and seconds of what comes back until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began, got = time.monotonic(), b""
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        while chunk := await asyncio.wait_for(reader.read(65536), 5):
            got += chunk
    except ConnectionError:
        pass
    writer.close()
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head[9:12] or 0), body, time.monotonic() - began


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ([GET, b"X-Big: ", *[PIECE] * 50], 431),
        ([GET, *[b"".join(b"X-%d: y\r\n" % n for n in range(1000))] * 100], 431),
        ([b"GET /", *[PIECE] * 50], 414),
        ([b"\r\n" * 2**15] * 50, 431),
        ([POST, b"Transfer-Encoding: chunked\r\n\r\n2;", *[PIECE] * 50], 431),
        ([POST, b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", *[PIECE] * 50], 431),
    ],
    ids=["header", "headers", "url", "empty lines", "chunk", "trailer"],
)
async def test_an_endless_head_is_refused(port: int, pieces: list[bytes], status: int) -> None:
    """After 64 KB it is over, at once and with little work."""
    found, body, seconds = await answer(port, *pieces)
    assert found == status
    assert seconds < 2
    assert orjson.loads(body)["error"]["type"] == "invalid_request_error"


async def test_the_refusal_is_told(port: int) -> None:
    """A client that waits for its answer reads it as the API's error object."""
    long = GET + b"X-Big: " + b"a" * 70_000 + b"\r\n\r\n"
    assert (await answer(port, long))[0] == 431
    assert (await answer(port, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n"))[0] == 414
    status, body, _ = await answer(port, b"nonsense\r\n\r\n")
    assert status == 400
    assert set(orjson.loads(body)["error"]) == {"message", "type", "param", "code"}


async def test_a_long_head_is_served(port: int) -> None:
    """Up to the limit nothing is refused."""
    head = GET + b"Connection: close\r\nX-Big: " + b"a" * 60_000 + b"\r\n\r\n"
    assert (await answer(port, head))[:2] == (200, b"GET ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"", 0), (GET, 408), (POST + b"Content-Length: 9\r\n\r\nab", 408), (b"\r\n", 0)],
)
async def test_what_stops_coming_is_ended(port: int, sent: bytes, status: int) -> None:
    """An unfinished request does not hold its connection."""
    found, _, seconds = await answer(port, sent)
    assert found == status
    assert 0.4 < seconds < 3


async def test_a_slow_body_is_waited_for(port: int) -> None:
    """The limit is for each pause of a body, not for the whole."""
    head = POST + b"Connection: close\r\nContent-Length: 4\r\n\r\n"
    found = await answer(port, head, b"a", b"b", b"c", b"d", pause=0.3)
    assert found[:2] == (200, b"POST abcd")


async def test_an_answer_takes_its_time(port: int) -> None:
    """Neither a call under way nor an idle connection between calls is ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(POST + b"Content-Length: 1\r\n\r\nx")
        assert (await reader.readuntil(b"POST x")).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(1.2)
    writer.write(b"GET /never HTTP/1.1\r\n\r\n")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 1.2)
    writer.close()


@pytest.mark.parametrize("upgrade", [b"", b"Connection: upgrade\r\nUpgrade: h2c\r\n"])
@pytest.mark.parametrize(
    "codings", [b"gzip, chunked", b"gzip\r\nTransfer-Encoding: chunked", b"identity,chunked"]
)
async def test_other_codings_are_refused(port: int, codings: bytes, upgrade: bytes) -> None:
    """A body that is packed is not taken for one that is not."""
    head = POST + upgrade + b"Transfer-Encoding: " + codings
    status, body, _ = await answer(port, head + b"\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
    assert status == 501
    checked(orjson.loads(body), "error")


async def test_a_trailer_is_no_header(port: int) -> None:
    """What comes after the body was not there when the call was let in."""
    head = POST.replace(b"/", b"/names", 1) + b"Connection: close\r\nTransfer-Encoding: Chunked\r\n"
    trailer = b"0\r\nAuthorization: Bearer x\r\n\r\n"
    status, names, _ = await answer(port, head + b"\r\n4\r\nbody\r\n" + trailer)
    assert (status, names) == (200, b"POST host,connection,transfer-encoding")


async def test_an_upgrade_is_passed_over(port: int) -> None:
    """The request is served as any other, its body too, and the connection stays in step."""
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n"
    one = POST + wish + b"Content-Length: 4\r\n\r\nbody"
    chunked = POST + wish + b"Transfer-Encoding: chunked\r\n\r\n4\r\nmore\r\n0\r\n\r\n"
    last = GET + b"Connection: close\r\n\r\n"
    whole = one * 3 + chunked + last
    for pieces in ([whole], [whole[at : at + 7] for at in range(0, len(whole), 7)]):
        status, rest, _ = await answer(port, *pieces)
        assert status == 200
        assert (rest.count(b"POST body"), rest.count(b"POST more")) == (3, 1)
        assert rest.endswith(b"GET ")


async def test_connect_is_refused(port: int) -> None:
    """This is no proxy."""
    assert (await answer(port, b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"))[0] == 400


async def test_many_upgrades_at_once(port: int) -> None:
    """However many stand in one piece."""
    wish = GET + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    status, rest, _ = await answer(port, wish * 1500, GET + b"Connection: close\r\n\r\n")
    assert (status, rest.count(b"HTTP/1.1 200")) == (200, 1500)


async def test_a_caller_that_never_reads_is_ended(port: int) -> None:
    """What waits for it is bounded, and so is the time; then its connection is gone."""
    with socket.create_connection(("127.0.0.1", port)) as caller:
        caller.sendall(b"GET /endless HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0.3)
        waiting = sum(POURED)
        assert 2**16 < waiting < 16 * 2**20  # nearly all of it in the system's buffers
        await asyncio.sleep(0.7)
        assert sum(POURED) - waiting < 2**18
        got = await asyncio.to_thread(lambda: [*iter(lambda: caller.recv(2**20), b"")])
        assert not got[-1].endswith(b"0\r\n\r\n")


async def test_a_caller_that_reads_slowly_is_served(port: int) -> None:
    """The limit is for taking nothing at all."""
    with socket.create_connection(("127.0.0.1", port)) as caller:
        caller.sendall(b"GET /endless HTTP/1.1\r\n\r\n")
        caller.setblocking(False)
        for _ in range(15):
            assert await asyncio.get_running_loop().sock_recv(caller, 2**20)
            await asyncio.sleep(0.1)


async def test_a_refusal_has_an_id(port: int) -> None:
    """What never reached the application can be found in a report all the same."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"nonsense\r\n\r\n")
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert b"\r\nx-request-id: req_" in head
    checked(orjson.loads(body), "error")
