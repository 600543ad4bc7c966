"""The answer of a Responses call that is not streamed."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.types import Send

from gateway.api.plain import attempt_whole, send_whole
from gateway.api.response_call import ResponseCall
from gateway.core.endpoints import CHAT, RESPONSES
from gateway.core.exact_json import dumps
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
    attempt = partial(attempt_whole, call, partial(_read, call))
    response, call.usage = await attempt_all(call.plan, attempt, call.parts.clock)
    await keep(response)
    call.settle(CallStatus.OK, 200)
    await send_whole(call, dumps(response), send)


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
