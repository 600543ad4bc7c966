"""The worker's HTTP surface: an OpenAI-compatible model server."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.core.clock import Clock
from gateway.core.errors import HeadwayError
from gateway.worker.answers import Answer, Choice, usage_of
from gateway.worker.calls import Call
from gateway.worker.engine import Engine
from gateway.worker.errors import error_body, error_response, no_route
from gateway.worker.gauges import metrics_text
from gateway.worker.options import WorkerOptions
from gateway.worker.requests import Generation, RequestReader, read_body
from gateway.worker.sequence import Event
from gateway.worker.tokenizer import Vocabulary

log = logging.getLogger(__name__)

_DONE = b"data: [DONE]\n\n"
_STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class WorkerApp:
    """Routes over one engine."""

    def __init__(
        self, engine: Engine, vocabulary: Vocabulary, options: WorkerOptions, clock: Clock
    ) -> None:
        self._engine = engine
        self._vocabulary = vocabulary
        self._options = options
        self._clock = clock
        self._started = int(clock.now())
        self._reader = RequestReader(vocabulary, options.served_model, options.context)
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/completions", self._completion, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/health", self._health),
                Route("/metrics", self._metrics),
            ],
            exception_handlers={HeadwayError: error_response, 404: no_route, 405: no_route},
        )

    async def _chat(self, request: Request) -> Response:
        return await self._generate(request, self._reader.chat(read_body(await request.body())))

    async def _completion(self, request: Request) -> Response:
        body = read_body(await request.body())
        return await self._generate(request, self._reader.completion(body))

    async def _models(self, _: Request) -> Response:
        model = {
            "id": self._options.served_model,
            "object": "model",
            "created": self._started,
            "owned_by": "headway",
            "max_model_len": self._options.context,
        }
        return JSONResponse({"object": "list", "data": [model]})

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _metrics(self, _: Request) -> Response:
        return PlainTextResponse(metrics_text(self._engine))

    async def _generate(self, request: Request, generation: Generation) -> Response:
        crash = self._options.faults.crash_prompt
        if crash and any(crash in text for text in generation.texts):
            os._exit(3)
        call = Call(
            self._engine, generation, self._options.context, self._options.faults.nan_prompt
        )
        answer = Answer(
            chat=generation.chat,
            model=self._options.served_model,
            created=int(self._clock.now()),
            pieces=self._vocabulary.pieces,
        )
        if generation.stream:
            events = self._stream(request, generation, call, answer)
            return StreamingResponse(
                events, media_type="text/event-stream", headers=_STREAM_HEADERS
            )
        return await self._whole(request, generation, call, answer)

    async def _whole(
        self, request: Request, generation: Generation, call: Call, answer: Answer
    ) -> Response:
        choices = [Choice() for _ in call.sequences]
        places = {id(sequence): at for at, sequence in enumerate(call.sequences)}
        gone = asyncio.create_task(_disconnected(request))
        running = asyncio.create_task(self._collect(call, choices, places))
        try:
            await asyncio.wait([gone, running], return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise ClientDisconnect
            await running
        finally:
            running.cancel()
            gone.cancel()
        if generation.echo:
            for at, choice in enumerate(choices):
                choice.text = generation.texts[at // generation.n] + choice.text
        usage = self._finish(request, generation, choices)
        return Response(orjson.dumps(answer.whole(choices, usage)), media_type="application/json")

    async def _collect(self, call: Call, choices: list[Choice], places: dict[int, int]) -> None:
        with call:
            async for group in call.events():
                for event in group:
                    choices[places[id(event.sequence)]].add(event)

    async def _stream(
        self, request: Request, generation: Generation, call: Call, answer: Answer
    ) -> AsyncIterator[bytes]:
        choices = [Choice() for _ in call.sequences]
        places = {id(sequence): at for at, sequence in enumerate(call.sequences)}
        try:
            with call:
                async for group in call.events():
                    parts = []
                    for event in group:
                        at = places[id(event.sequence)]
                        if generation.chat and not choices[at].tokens:
                            parts.append(_sse(answer.opening(at)))
                        if generation.echo and not choices[at].tokens:
                            text = generation.texts[at // generation.n]
                            parts.append(_sse(answer.chunk(at, _text_event(event, text))))
                        choices[at].add(event)
                        parts.append(_sse(answer.chunk(at, event)))
                    yield b"".join(parts)
        except HeadwayError as error:
            yield _sse(error_body(error))
            return
        usage = self._finish(request, generation, choices)
        yield (_sse(answer.closing(usage)) if generation.include_usage else b"") + _DONE

    def _finish(
        self, request: Request, generation: Generation, choices: list[Choice]
    ) -> dict[str, Any]:
        """Usage of a finished call; noted in the request log, where there is one."""
        prompt = sum(len(tokens) for tokens in generation.prompts)
        completion = sum(choice.tokens for choice in choices)
        if self._options.request_log is not None:
            entry = {
                "id": request.headers.get("x-request-id"),
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "finish_reason": choices[0].finish_reason,
            }
            _append(self._options.request_log, entry)
        return usage_of(prompt, completion)


def _append(path: Path, entry: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")


async def _disconnected(request: Request) -> None:
    """Return when the client has left; the body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _text_event(event: Event, text: str) -> Event:
    return Event(event.sequence, text)


def _sse(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
