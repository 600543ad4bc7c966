"""The worker's HTTP surface: an OpenAI-compatible model server."""

import os
from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from gateway.core.clock import Clock
from gateway.core.errors import HeadwayError
from gateway.worker.answers import Answer, Choice, usage_of
from gateway.worker.calls import Call
from gateway.worker.chunks import Transcript
from gateway.worker.engine import Engine
from gateway.worker.errors import error_body, error_response, no_route
from gateway.worker.gauges import metrics_text
from gateway.worker.options import WorkerOptions
from gateway.worker.requests import Generation, RequestReader, read_body
from gateway.worker.responses import EventStream, while_connected
from gateway.worker.tokenizer import Vocabulary

_CLIENT_LEFT = 499  # never sent: nobody is there to read it


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
        faults = self._options.faults
        if faults.crash_prompt and any(faults.crash_prompt in text for text in generation.texts):
            os._exit(3)
        call = Call(self._engine, generation, self._options.context, faults.nan_prompt)
        answer = Answer(
            chat=generation.chat,
            model=self._options.served_model,
            created=int(self._clock.now()),
            pieces=self._vocabulary.pieces,
        )
        if generation.stream:
            return EventStream(self._stream(request, generation, call, answer))
        try:
            body = await while_connected(
                self._whole(request, generation, call, answer), request.receive
            )
        except ClientDisconnect:
            return Response(status_code=_CLIENT_LEFT)
        return Response(body, media_type="application/json")

    async def _whole(
        self, request: Request, generation: Generation, call: Call, answer: Answer
    ) -> bytes:
        choices = [Choice() for _ in call.sequences]
        with call:
            async for group in call.events():
                for event in group:
                    choices[event.sequence.place].add(event)
        if generation.echo:
            for at, choice in enumerate(choices):
                choice.text = generation.texts[at // generation.n] + choice.text
        usage = self._finish(request, generation, choices)
        return orjson.dumps(answer.whole(choices, usage))

    async def _stream(
        self, request: Request, generation: Generation, call: Call, answer: Answer
    ) -> AsyncIterator[bytes]:
        transcript = Transcript(answer, generation)
        begun = False
        try:
            with call:
                async for group in call.events():
                    begun = True
                    if piece := transcript.add(group):
                        yield piece
        except HeadwayError as error:
            if not begun:
                raise
            yield b"data: " + orjson.dumps(error_body(error)) + b"\n\n"
            return
        yield transcript.end(self._finish(request, generation, transcript.choices))

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
            with self._options.request_log.open("ab") as file:
                file.write(orjson.dumps(entry) + b"\n")
        return usage_of(prompt, completion)
