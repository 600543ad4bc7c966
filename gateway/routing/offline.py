"""One attempt for one batch row. The queue does the retries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.core.clock import Clock
from gateway.core.errors import UpstreamFailed
from gateway.core.lanes import Lane
from gateway.core.targets import UpstreamCall
from gateway.core.usage import Usage
from gateway.providers.aggregate import aggregate, json_answer
from gateway.providers.base import Reply
from gateway.providers.registry import Registry
from gateway.providers.sse import events
from gateway.routing.fallback import FallbackRule, attempt_all
from gateway.routing.outgoing import outgoing_body
from gateway.routing.plan import Route
from gateway.routing.router import Router

PREFIX = "/v1"
_STREAMED = frozenset({"/v1/chat/completions", "/v1/completions"})


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """A success: the answer as a plain call would have got it, and who gave it."""

    status: int
    body: dict[str, Any]
    usage: Usage | None
    target: str
    served_model: str


class RowCaller:
    """Calls targets for the dispatcher.

    Generating endpoints are streamed and put together again, so that the end of prefill is seen
    and a cut answer is never taken for a whole one.
    """

    def __init__(self, router: Router, registry: Registry, clock: Clock) -> None:
        self._router = router
        self._registry = registry
        self._clock = clock

    async def call(
        self,
        model: str,
        endpoint: str,
        body: bytes,
        request_id: str,
        on_first_token: Callable[[], None] | None = None,
    ) -> RowAnswer:
        """One attempt over the targets that serve ``model``; ``endpoint`` is such as ``/v1/…``.

        ``body`` is the row's JSON object. Raises ModelNotFound and UpstreamError. Cancelling
        closes the connection.
        """
        members: dict[str, Any] = orjson.loads(body)
        row = _Row(members, endpoint, request_id, on_first_token)

        async def attempt(route: Route, last: bool) -> RowAnswer:
            del last
            return await self._attempt(route, row)

        plan = self._router.plan(model, Lane.BATCH)
        return await attempt_all(plan, attempt, self._clock, FallbackRule(retry=False, resend=True))

    async def _attempt(self, route: Route, row: "_Row") -> RowAnswer:
        stream = row.endpoint in _STREAMED
        call = UpstreamCall(
            row.endpoint.removeprefix(PREFIX),
            outgoing_body(row.members, route, Lane.BATCH, stream=stream),
            row.request_id,
            stream,
            route.timeouts,
        )
        reply = await self._registry.get(route.target).send(call)
        try:
            if stream and "text/event-stream" in reply.headers.get("content-type", ""):
                scrub = self._registry.scrubber(route.target)
                source = events(reply.body, route.target)
                whole = await aggregate(source, route.target, scrub, row.on_first_token)
                await reply.finish()
                answer, usage = whole.body, whole.usage
            else:
                answer = await _plain(reply, route.target)
                usage = _usage(answer)
        finally:
            await reply.aclose()
        return RowAnswer(reply.status, answer, usage, route.target, route.served_model)


@dataclass(frozen=True, slots=True)
class _Row:
    members: dict[str, Any]
    endpoint: str
    request_id: str
    on_first_token: Callable[[], None] | None


async def _plain(reply: Reply, target: str) -> dict[str, Any]:
    answer = json_answer(await reply.read())
    if answer is None:
        raise UpstreamFailed("The target's answer is not a JSON object.", target=target)
    return answer


def _usage(answer: dict[str, Any]) -> Usage | None:
    usage = answer.get("usage")
    return Usage.from_openai(usage) if isinstance(usage, dict) else None
