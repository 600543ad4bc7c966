"""A provider with a Batch API of its own, on 127.0.0.1, whose every step a test decides."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.ports import free_port

Answer = Callable[[dict[str, Any]], dict[str, Any] | None]


def say(request: dict[str, Any]) -> dict[str, Any] | None:
    """A good answer whose text is the last message."""
    body = request["body"]
    message = {"role": "assistant", "content": body["messages"][-1]["content"]}
    return {
        "response": {
            "status_code": 200,
            "request_id": "r",
            "body": {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
            },
        },
        "error": None,
    }


class BatchProvider:
    """``hold``: batches do not end by themselves. ``answer`` gives a request's line; None: no line.

    ``end_as`` is the state in which a batch ends. ``lose_creates`` answers to POST /batches are
    lost on the way though the batch was made. ``batches`` and ``uploads`` are what was handed in.
    """

    def __init__(self) -> None:
        self.hold = False
        self.answer: Answer = say
        self.end_as = "completed"
        self.lose_creates = 0
        self.refuse: tuple[int, dict[str, Any]] | None = None
        self.batches: dict[str, dict[str, Any]] = {}
        self.uploads: dict[str, bytes] = {}
        self.deleted: list[str] = []
        self.port = free_port()
        app = Starlette(
            routes=[
                Route("/v1/files", self._upload, methods=["POST"]),
                Route("/v1/files/{id}", self._delete, methods=["DELETE"]),
                Route("/v1/files/{id}/content", self._content),
                Route("/v1/batches", self._create, methods=["POST"]),
                Route("/v1/batches", self._list, methods=["GET"]),
                Route("/v1/batches/{id}", self._get),
                Route("/v1/batches/{id}/cancel", self._cancel, methods=["POST"]),
            ]
        )
        config = uvicorn.Config(app, port=self.port, log_level="error", ws="none", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    @property
    def url(self) -> str:
        """Base URL for a policy."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> Self:
        """Listen."""
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """End the server."""
        self._server.should_exit = True
        self._thread.join(5)

    def requests(self) -> list[dict[str, Any]]:
        """Every request of every batch, in order."""
        files = [batch["input_file_id"] for batch in self.batches.values()]
        return [json.loads(line) for file in files for line in self.uploads[file].splitlines()]

    async def _upload(self, request: Request) -> Response:
        if self.refuse:
            return JSONResponse(self.refuse[1], self.refuse[0])
        async with request.form() as form:
            assert form["purpose"] == "batch"
            content = await form["file"].read()  # type: ignore[union-attr]
        file = f"file-{len(self.uploads)}"
        self.uploads[file] = content
        return JSONResponse({"id": file, "object": "file"})

    async def _delete(self, request: Request) -> Response:
        self.deleted.append(request.path_params["id"])
        return JSONResponse({"id": request.path_params["id"], "deleted": True})

    async def _content(self, request: Request) -> Response:
        return Response(self.uploads[request.path_params["id"]])

    async def _create(self, request: Request) -> Response:
        wanted = await request.json()
        batch = {"id": f"batch_{len(self.batches)}", "status": "in_progress", **wanted}
        self.batches[batch["id"]] = batch
        if self.lose_creates:
            self.lose_creates -= 1
            return Response("<html>bad gateway</html>", 502)
        return JSONResponse(batch)

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [*reversed(self.batches.values())]})

    async def _get(self, request: Request) -> Response:
        batch = self.batches[request.path_params["id"]]
        if batch["status"] == "cancelling":
            self._end(batch, "cancelled")
        elif batch["status"] == "in_progress" and not self.hold:
            self._end(batch, self.end_as)
        return JSONResponse(batch)

    async def _cancel(self, request: Request) -> Response:
        batch = self.batches[request.path_params["id"]]
        batch["status"] = "cancelling"
        return JSONResponse(batch)

    def _end(self, batch: dict[str, Any], status: str) -> None:
        batch["status"] = status
        if status == "failed":
            batch["errors"] = {"data": [{"code": "bad", "message": "too many tokens queued"}]}
            return
        lines = []
        for text in self.uploads[batch["input_file_id"]].splitlines():
            asked = json.loads(text)
            if (found := self.answer(asked)) is not None:
                lines.append(json.dumps({"id": "x", "custom_id": asked["custom_id"], **found}))
        name = f"{batch['id']}-output"
        self.uploads[name] = "\n".join(reversed(lines)).encode()
        batch["output_file_id"] = name
