"""The simulated engine's HTTP surface: an OpenAI-compatible model server."""

import asyncio
from abc import ABC, abstractmethod

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.core.clock import Clock
from gateway.core.errors import HeadwayError, NotFound
from gateway.schemas.errors import error_body
from gateway.simulator.answers import Answer
from gateway.simulator.calls import Call
from gateway.simulator.clockwork import Clockwork
from gateway.simulator.control import Control
from gateway.simulator.gauges import metrics_text
from gateway.simulator.options import EngineOptions
from gateway.simulator.requests import read_call

_STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]
_PLAIN = [(b"content-type", b"application/json")]
_NO_ROOM = error_body("The sequence does not fit in the cache.", "server_error")


class EngineApp:
    """Routes over one engine in real time. ``/control`` is ours; all else is as vLLM has it."""

    def __init__(self, clockwork: Clockwork, options: EngineOptions, clock: Clock) -> None:
        self._clockwork = clockwork
        self._options = options
        self._clock = clock
        self._control = Control(clockwork.engine)
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/completions", self._completion, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/health", self._health),
                Route("/metrics", self._metrics),
                Route("/control", self._change, methods=["POST"]),
                Route("/control", self._state),
            ],
            exception_handlers={HeadwayError: _error},
        )

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, chat=True)

    async def _completion(self, request: Request) -> Response:
        return await self._answer(request, chat=False)

    async def _answer(self, request: Request, *, chat: bool) -> Response:
        model = self._options.served_model
        wanted = read_call(
            await request.body(),
            chat=chat,
            model=model,
            natural=self._options.output_tokens,
            context=min(self._options.context, self._clockwork.engine.profile.kv_tokens),
        )
        answer = Answer(wanted, model, int(self._clock.now()))
        call = Call(self._clockwork, wanted)
        return (_Stream if wanted.stream else _Whole)(call, answer)

    async def _models(self, _: Request) -> Response:
        model = {
            "id": self._options.served_model,
            "object": "model",
            "created": 0,
            "owned_by": "headway",
            "max_model_len": self._options.context,
        }
        return JSONResponse({"object": "list", "data": [model]})

    async def _health(self, _: Request) -> Response:
        return Response()

    async def _metrics(self, _: Request) -> Response:
        if not self._control.metrics:
            raise NotFound("The metrics are turned off.")
        options = self._options
        return PlainTextResponse(
            metrics_text(self._clockwork, options.flavour, options.served_model)
        )

    async def _change(self, request: Request) -> Response:
        self._control.change(await request.body())
        return await self._state(request)

    async def _state(self, _: Request) -> Response:
        return JSONResponse(self._control.state())


class _Answering(ABC, Response):
    """An answer that is cancelled when its reader leaves."""

    def __init__(self, call: Call, answer: Answer) -> None:
        super().__init__()
        self._call = call
        self._answer = answer

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(self._watch(receive))
        try:
            with self._call:
                await self._send(send)
        finally:
            watching.cancel()

    @abstractmethod
    async def _send(self, send: Send) -> None: ...

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._call.leave()


class _Stream(_Answering):
    """Events; the head goes out at once, as from vLLM."""

    async def _send(self, send: Send) -> None:
        call, answer, said = self._call, self._answer, 0
        await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        while True:
            heard = await call.heard(said)
            body = answer.words(said, heard) if heard > said else b""
            if not said:
                body = answer.opening() + body
            said = heard
            if call.over:
                break
            await send({"type": "http.response.body", "body": body, "more_body": True})
        end = _framed_error() if call.failed else answer.closing()
        await send({"type": "http.response.body", "body": body + end})


class _Whole(_Answering):
    """One JSON object."""

    async def _send(self, send: Send) -> None:
        await self._call.heard(0)
        if self._call.failed:
            status, body = 500, JSONResponse(_NO_ROOM).body
        else:
            status, body = 200, self._answer.whole()
        await send({"type": "http.response.start", "status": status, "headers": _PLAIN})
        await send({"type": "http.response.body", "body": body})


def _framed_error() -> bytes:
    return b"data: " + bytes(JSONResponse(_NO_ROOM).body) + b"\n\n"


async def _error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HeadwayError)
    status = 404 if isinstance(error, NotFound) else 400
    return JSONResponse(error_body(error.message, error.type, error.param, error.code), status)
