"""The answer of a Responses call that is not streamed."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.types import Send

from gateway.api.plain import send_whole
from gateway.api.response_call import ResponseCall
from gateway.core.endpoints import CHAT, RESPONSES
from gateway.core.exact_json import dumps
from gateway.core.large_json import LARGE
from gateway.core.usage import Usage
from gateway.metering.counter import answer_usage
from gateway.metering.record import CallStatus
from gateway.providers.answers import plain_answer
from gateway.providers.broken_answers import malformed_answer
from gateway.responses.builder import MALFORMED, whole_response
from gateway.responses.native import whole
from gateway.routing.fallback import attempt_all
from gateway.routing.route import Route

Json = dict[str, Any]
Keep = Callable[[Json], Awaitable[None]]


async def answer_response(call: ResponseCall, keep: Keep, send: Send) -> None:
    """Get the response, with retries and fallback, keep it, and send it."""
    response = await attempt_all(call.plan, partial(_attempt, call), call.parts.clock)
    await keep(response)
    call.settle(CallStatus.OK, 200)
    await send_whole(call, dumps(response), send)


async def _attempt(call: ResponseCall, route: Route, last: bool) -> Json:
    """One attempt, read to its end."""
    del last
    held = await call.send(route)
    try:
        data = await held.reply.read()
        if len(data) <= LARGE:
            response, usage = _read(call, route, data)
        else:
            response, usage = await asyncio.to_thread(_read, call, route, data)
    except BaseException as error:
        call.failed(route, error)
        raise
    finally:
        await held.aclose()
    call.usage = usage
    call.succeeded(route, held.reply.status)
    return response


def _read(call: ResponseCall, route: Route, data: bytes) -> tuple[Json, Usage]:
    endpoint = RESPONSES if route.responses else CHAT
    scrub = call.parts.registry.scrubber(route.target)
    answer = plain_answer(data, endpoint, route.target, scrub)
    return _response(call, route, answer), answer_usage(answer, call.request.prompt_bytes)


def _response(call: ResponseCall, route: Route, answer: Json) -> Json:
    try:
        if route.responses:
            return whole(answer, call.begun)
        return whole_response(call.begun, answer, int(call.parts.clock.now()))
    except MALFORMED:
        raise malformed_answer(route.target) from None
