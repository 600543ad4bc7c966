"""The Responses API: /v1/responses."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.auth import CALLER, caller_of
from gateway.api.body import BodyLimits, parsed, read_body
from gateway.api.calls import Call, CallParts, class_headers
from gateway.api.deferred import prefers_async
from gateway.api.errors import RawHeaders
from gateway.api.inference import class_without_body, serve
from gateway.api.json_response import JsonResponse
from gateway.api.middleware import EXTRA_HEADERS, REQUEST_ID
from gateway.api.response_call import ResponseCall
from gateway.api.response_plain import answer_response
from gateway.api.response_watch import watched
from gateway.core.endpoints import RESPONSES
from gateway.core.errors import ClientError, HeadwayError, InvalidRequest
from gateway.core.exact_json import dumps
from gateway.core.lanes import Lane
from gateway.jobs.responses import ResponseService
from gateway.routing.classifier import Decision
from gateway.schemas.deleted import deleted_object
from gateway.schemas.lists import list_object, parse_page, whole_number
from gateway.schemas.responses import SOONEST, ResponseRequest, alone, parse_response

Json = dict[str, Any]


def response_routes(service: ResponseService, parts: CallParts, limits: BodyLimits) -> list[Route]:
    """The routes; paths start with ``/v1/responses``."""
    api = ResponsesApi(service)
    one = f"{RESPONSES}/{{response_id}}"
    create: ASGIApp = CreateResponse(service, parts, limits)
    return [
        Route(RESPONSES, create, methods=["POST"]),
        Route(one, api.retrieve, methods=["GET"]),
        Route(one, api.delete, methods=["DELETE"]),
        Route(f"{one}/cancel", api.cancel, methods=["POST"]),
        Route(f"{one}/input_items", api.items, methods=["GET"]),
    ]


class CreateResponse:
    """POST /v1/responses: at once, streamed or in the background."""

    def __init__(self, service: ResponseService, parts: CallParts, limits: BodyLimits) -> None:
        self._service = service
        self._parts = parts
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        try:
            body = await read_body(scope, receive, self._limits.size)
            asked = await parsed(parse_response, body, self._limits.parts)
            if asked.background:
                await self._start(asked, scope, receive, send)
                return
            items = await self._service.conversation(scope[CALLER], asked)
            deferred = self._parts.deferred if prefers_async(scope["headers"]) else None
            if deferred is None:
                await self._service.make_room(asked)
        except ClientError:
            scope[EXTRA_HEADERS] = class_without_body(self._parts, RESPONSES, scope)
            raise
        if deferred is not None:
            await deferred.accept(RESPONSES, alone(asked, items), scope, receive, send)
            return
        await self._answer(asked, items, scope, receive, send)

    async def _answer(
        self,
        asked: ResponseRequest,
        items: list[Json],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        if asked.previous is not None:
            size = len(dumps(items))
            asked = replace(asked, call=replace(asked.call, prompt_bytes=size))
        call = ResponseCall(self._parts, scope[CALLER], asked, items, scope[REQUEST_ID])
        await call.prepare()
        keep = partial(self._keep, asked, call)

        async def plain(_: Call, send: Send) -> None:
            await answer_response(call, keep, send)

        async def send_kept(message: Message) -> None:
            """What a stream says at its end is true: the response is kept by then."""
            last = message["type"] == "http.response.body" and not message.get("more_body")
            if last and call.streamed is not None:
                try:
                    await keep(call.streamed)
                except HeadwayError as error:
                    message = {**message, "body": call.error_event(error)}
            await send(message)

        await serve(call, scope, receive, send_kept if asked.call.stream else send, plain)

    async def _keep(self, asked: ResponseRequest, call: ResponseCall, response: Json) -> None:
        if asked.store:
            await self._service.keep(call.caller, asked, response)

    async def _start(
        self, asked: ResponseRequest, scope: Scope, receive: Receive, send: Send
    ) -> None:
        caller = scope[CALLER]
        key = Request(scope).headers.get("idempotency-key")
        response = await self._service.start(caller, asked, key)
        if asked.call.stream:
            answer: Response = watched(self._service, caller, response["id"])
        else:
            answer = JsonResponse(response)
        for name, value in _class_of(asked):
            answer.headers[name.decode()] = value.decode()
        await answer(scope, receive, send)


class ResponsesApi:
    """Handlers of stored responses."""

    def __init__(self, service: ResponseService) -> None:
        self._service = service

    async def retrieve(self, request: Request) -> Response:
        """GET /v1/responses/{response_id}: as it stands, or with ``stream`` as it comes."""
        caller, response_id = caller_of(request), request.path_params["response_id"]
        response = await self._service.get(caller, response_id)
        if request.query_params.get("stream") == "true":
            return watched(self._service, caller, response_id, _after(request))
        return JsonResponse(response)

    async def cancel(self, request: Request) -> Response:
        """POST /v1/responses/{response_id}/cancel."""
        response_id = request.path_params["response_id"]
        return JsonResponse(await self._service.cancel(caller_of(request), response_id))

    async def delete(self, request: Request) -> Response:
        """DELETE /v1/responses/{response_id}."""
        response_id = request.path_params["response_id"]
        await self._service.delete(caller_of(request), response_id)
        return JsonResponse(deleted_object("response", response_id))

    async def items(self, request: Request) -> Response:
        """GET /v1/responses/{response_id}/input_items, newest first."""
        page = parse_page(request.query_params)
        response_id = request.path_params["response_id"]
        items = await self._service.items(caller_of(request), response_id)
        if page.descending:
            items = items[::-1]
        rest = items[_place_after(items, page.after) :]
        return JsonResponse(list_object(rest[: page.limit], has_more=len(rest) > page.limit))


def _place_after(items: Sequence[Json], after: str | None) -> int:
    if after is None:
        return 0
    for position, item in enumerate(items):
        if item["id"] == after:
            return position + 1
    raise InvalidRequest(f"No such item: {after[:64]}", param="after", code="invalid_value")


def _after(request: Request) -> int:
    text = request.query_params.get("starting_after")
    if text is None:
        return -1
    number = whole_number(text)
    if number is None:
        raise InvalidRequest(
            "starting_after must be an integer.", param="starting_after", code="invalid_type"
        )
    return number


def _class_of(asked: ResponseRequest) -> RawHeaders:
    lane = Lane.ELASTIC if asked.window == SOONEST else Lane.BATCH
    return class_headers(Decision(lane, "background"))
