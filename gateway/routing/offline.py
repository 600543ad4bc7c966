"""One attempt for one batch row. The dispatcher chooses the target and does the retries."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

from gateway.core.endpoints import CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES, below_prefix
from gateway.core.errors import UpstreamFailed
from gateway.core.exact_json import with_long_integers
from gateway.core.rates import RateLimits
from gateway.core.targets import UpstreamCall
from gateway.core.usage import ReportedUsage, reported_in
from gateway.providers.aggregate import aggregate
from gateway.providers.answers import plain_answer, with_vectors_as_wanted
from gateway.providers.broken_answers import malformed_answer
from gateway.providers.registry import Registry
from gateway.providers.sse import events
from gateway.responses.builder import MALFORMED, whole_response
from gateway.responses.events import ENDED
from gateway.responses.forms import chat_form, native_form, row_items
from gateway.responses.shape import new_response
from gateway.routing.outgoing import outgoing_body
from gateway.routing.route import Route
from gateway.routing.router import Router

_STREAMED = frozenset({CHAT, COMPLETIONS})


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """A success: the answer as a plain call would have got it, and who gave it.

    ``usage`` is what the target reported, if it did.
    """

    status: int
    body: dict[str, Any]
    usage: ReportedUsage | None
    target: str
    served_model: str


class RowPlace(Protocol):
    """Where a row is sent, and who hears how its call goes on."""

    @property
    def target(self) -> str:
        """The target's name in the policy."""

    @property
    def key(self) -> int:
        """The place of the credential to use among those of the target."""

    def head(self, rates: RateLimits | None) -> None:
        """The target began to answer with a success."""

    def first_token(self) -> None:
        """The target began to generate."""

    def token(self) -> None:
        """The target generated more."""


class RowCaller:
    """Calls targets for the dispatcher.

    Generating endpoints are streamed and put together again, so that the end of prefill is seen
    and a cut answer is never taken for a whole one.
    """

    def __init__(self, router: Router, registry: Registry) -> None:
        self._router = router
        self._registry = registry
        self._routes: dict[tuple[str, str], Route] = {}

    async def call(
        self, model: str, endpoint: str, body: bytes, request_id: str, at: RowPlace
    ) -> RowAnswer:
        """One attempt at one target; ``endpoint`` is such as ``/v1/…``.

        ``body`` is the row's JSON object. Raises ModelNotFound and UpstreamError. Cancelling
        closes the connection.
        """
        asked: dict[str, Any] = with_long_integers(body, orjson.loads(body))
        route = self._route(model, at.target)
        if endpoint == RESPONSES and not route.responses:
            translated = chat_form(asked, row_items(asked), stream=False)
            answer = await self._call(route, CHAT, translated, request_id, at)
            return replace(answer, body=_response(asked, answer, request_id))
        if endpoint != RESPONSES:
            return await self._call(route, endpoint, asked, request_id, at)
        sent = native_form(asked, row_items(asked), stream=False)
        answer = await self._call(route, endpoint, sent, request_id, at)
        if answer.body.get("status") not in ENDED:
            raise UpstreamFailed("The target's response has not ended.", target=route.target)
        return answer

    async def _call(
        self, route: Route, endpoint: str, members: dict[str, Any], request_id: str, at: RowPlace
    ) -> RowAnswer:
        stream = endpoint in _STREAMED
        call = UpstreamCall(
            below_prefix(endpoint),
            outgoing_body(members, route, stream=stream),
            request_id,
            stream,
            route.timeouts,
            at.key,
            route.served_model,
            route.head,
        )
        scrub = self._registry.scrubber(route.target)
        reply = await self._registry.get(route.target).send(call)
        at.head(reply.rates)
        try:
            if stream and "text/event-stream" in reply.headers.get("content-type", ""):
                source = events(reply.body, route.target)
                whole = await aggregate(source, route.target, scrub, at.first_token, at.token)
                await reply.finish()
                answer, usage = whole.body, whole.usage
            else:
                answer = plain_answer(await reply.read(), endpoint, route.target, scrub)
                if endpoint == EMBEDDINGS:
                    answer = with_vectors_as_wanted(members, answer, route.target) or answer
                usage = reported_in(answer)
        finally:
            await reply.aclose()
        return RowAnswer(reply.status, answer, usage, route.target, route.served_model)

    def _route(self, model: str, target: str) -> Route:
        route = self._routes.get((model, target))
        if route is None:
            route = self._routes[model, target] = self._router.route(target, model)
        return route


def _response(asked: dict[str, Any], answer: RowAnswer, request_id: str) -> dict[str, Any]:
    """The response that a chat answer comes to."""
    made = int(answer.body.get("created") or 0)
    response_id = f"resp_{request_id.partition('_')[2]}"
    begun = new_response(response_id, made, asked, status="in_progress", tier="batch")
    try:
        return whole_response(begun, answer.body, made)
    except MALFORMED:
        raise malformed_answer(answer.target) from None
