"""The answer of a call that is not streamed."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from starlette.types import Send

from gateway.api.calls import Call
from gateway.core.exact_json import dumps
from gateway.core.large_json import LARGE, let_go, write_large
from gateway.core.usage import Usage
from gateway.metering.counter import answer_usage
from gateway.metering.record import CallStatus
from gateway.providers.answers import plain_answer
from gateway.routing.fallback import attempt_all
from gateway.routing.route import Route

#: Takes the call, who answered it, and the answer; None when that is as it should be.
Mend = Callable[[Call, Route, dict[str, Any]], dict[str, Any] | None]
Found = TypeVar("Found")


async def answer_plain(call: Call, send: Send, mend: Mend | None = None) -> None:
    """Get the answer, with retries and fallback, and pass its bytes on.

    ``mend`` gives an answer the form that the client asked for.
    """
    attempt = partial(attempt_whole, call, partial(_read, call, mend))
    data, call.usage = await attempt_all(call.plan, attempt, call.parts.clock)
    call.settle(CallStatus.OK, 200)
    await send_whole(call, data, send)


async def send_whole(call: Call, data: bytes, send: Send) -> None:
    """Send the JSON ``data`` as the call's answer."""
    call.answered()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(data)),
        *call.headers(),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for at in range(0, len(data) - LARGE, LARGE):
        piece = data[at : at + LARGE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    last = data if len(data) <= LARGE else data[-((len(data) - 1) % LARGE + 1) :]
    await send({"type": "http.response.body", "body": last})


async def attempt_whole(
    call: Call, read: Callable[[Route, bytes], Found], route: Route, last: bool
) -> Found:
    """One attempt, read to its end: what ``read`` makes of it, of a large answer in a thread."""
    del last
    held = await call.send(route)
    try:
        data = await held.reply.read()
        if len(data) <= LARGE:
            found = read(route, data)
        else:
            found = await asyncio.to_thread(read, route, data)
    except BaseException as error:
        call.failed(route, error)
        raise
    finally:
        await held.aclose()
    call.succeeded(route, held.reply.status)
    return found


def _read(call: Call, mend: Mend | None, route: Route, data: bytes) -> tuple[bytes, Usage]:
    """The bytes for the client, and what the answer used."""
    scrub = call.parts.registry.scrubber(route.target)
    answer = shown = plain_answer(data, call.endpoint, route.target, scrub)
    if mend is not None:
        shown = mend(call, route, answer) or answer
    if call.tier is not None and not answer.get("service_tier"):
        shown = {**shown, "service_tier": call.tier}
    if shown is not answer:
        data = dumps(shown) if len(data) <= LARGE else write_large(shown, len(data))
    usage = answer_usage(answer, call.request.prompt_bytes)
    if len(data) > LARGE:
        let_go(shown)
        let_go(answer)
    return data, usage
