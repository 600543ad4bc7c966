"""What surrounds every request."""

import gc
import logging
import weakref

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.middleware import Errors, RequestId
from gateway.core.errors import ClientGone, HeadwayError, InvalidRequest


def raising(error: Exception, *, late: bool = False) -> ASGIApp:
    """An application that fails, after its head when ``late``."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if late:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error

    return RequestId(Errors(app))


async def get(app: ASGIApp) -> httpx.Response:
    """One request, without a server."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return await client.get("/")


async def test_errors_are_answered() -> None:
    """A product error has its status, and the answer its id and length."""
    answer = await get(raising(InvalidRequest("words", param="p")))
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "p"
    assert answer.headers["x-request-id"].startswith("req_")
    assert int(answer.headers["content-length"]) == len(answer.content)


async def test_foreign_errors_are_logged_without_their_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log has kind and place, never the text, which may hold content."""
    with caplog.at_level(logging.ERROR):
        answer = await get(raising(ValueError("CANARY-P")))
    assert answer.status_code == 500
    assert "ValueError" in caplog.text
    assert "CANARY-P" not in caplog.text + answer.text


async def test_nothing_is_sent_twice() -> None:
    """After the head has gone out an error is not answered but raised."""
    with pytest.raises(InvalidRequest):
        await get(raising(InvalidRequest("x"), late=True))


async def test_nobody_is_answered_who_has_left() -> None:
    """A caller that is gone gets no answer."""
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    await raising(ClientGone("x"))(scope, receive, send)
    assert not sent


@pytest.mark.parametrize("kind", [ClientGone, InvalidRequest])
async def test_a_failed_call_is_gone_at_once(kind: type[HeadwayError]) -> None:
    """A frame that keeps its error is no circle: those of many callers would hold up all others."""
    held: list[weakref.ref[object]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        call = type("Call", (), {})()
        held.append(weakref.ref(call))
        before = ValueError("the first")
        error = kind("the second")
        try:
            raise before
        except ValueError:
            raise error from None

    async def take(message: object) -> None:
        pass

    gc.disable()
    try:
        await Errors(app)({"type": "http", "method": "POST"}, _nothing, take)
        assert held[0]() is None
    finally:
        gc.enable()


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
