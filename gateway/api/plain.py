"""The answer of a call that is not streamed."""

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.types import Send

from gateway.api.calls import Call
from gateway.core.exact_json import dumps
from gateway.metering.counter import answer_usage
from gateway.metering.record import CallStatus
from gateway.providers.answers import plain_answer
from gateway.routing.fallback import attempt_all
from gateway.routing.route import Route

#: Takes the call, who answered it, and the answer; None when that is as it should be.
Mend = Callable[[Call, Route, dict[str, Any]], dict[str, Any] | None]


async def answer_plain(call: Call, send: Send, mend: Mend | None = None) -> None:
    """Get the answer, with retries and fallback, and pass its bytes on.

    ``mend`` gives an answer the form that the client asked for.
    """
    data, answer = await attempt_all(call.plan, partial(_attempt, call, mend), call.parts.clock)
    call.usage = answer_usage(answer, call.request.prompt_bytes)
    call.settle(CallStatus.OK, 200)
    if call.tier is not None and not answer.get("service_tier"):
        data = dumps({**answer, "service_tier": call.tier})
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
    await send({"type": "http.response.body", "body": data})


async def _attempt(
    call: Call, mend: Mend | None, route: Route, last: bool
) -> tuple[bytes, dict[str, Any]]:
    """One attempt, read to its end: the bytes and the object in them."""
    del last
    held = await call.send(route)
    try:
        data = await held.reply.read()
        scrub = call.parts.registry.scrubber(route.target)
        answer = plain_answer(data, call.endpoint, route.target, scrub)
        if mend is not None and (mended := mend(call, route, answer)) is not None:
            data, answer = dumps(mended), mended
    except BaseException as error:
        call.failed(route, error)
        raise
    finally:
        await held.aclose()
    call.succeeded(route, held.reply.status)
    return data, answer
