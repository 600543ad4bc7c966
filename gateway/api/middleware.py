"""What surrounds every request: its id, and the answer to errors. Plain ASGI, no wrapper tasks."""

import logging
import re
from collections.abc import Awaitable, Callable
from time import perf_counter

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.errors import answer_for
from gateway.core.errors import ClientGone, HeadwayError
from gateway.core.ids import new_id

REQUEST_ID = "headway.request_id"
STARTED = "headway.started"
#: Headers that an error answer must carry too, noted by a handler.
EXTRA_HEADERS = "headway.extra_headers"
_DOUBLED = re.compile("//+")
#: Sends a part of a body at once; false when it cannot. An empty one only asks.
SendNow = Callable[[bytes], bool]
_log = logging.getLogger(__name__)


class RequestId:
    """Gives each request an id, in the scope and on every answer as ``x-request-id``.

    Every answer tells the time to its head as ``openai-processing-ms``. Doubled slashes of a path
    are one: base URLs end with one or without. Notes in the scope that the head has gone out. The
    only wrapper around ``send``: each one more would be paid for by every event of every stream.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if "//" in scope["path"]:
            scope["path"] = _DOUBLED.sub("/", scope["path"])
        request_id = scope[REQUEST_ID] = new_id("req")
        await self._app(scope, receive, SendWithId(scope, send, request_id.encode()))


class SendWithId:
    """``send`` that adds the id and the time to the head of the answer.

    ``send_now`` sends a part of a streamed body without a wait, if the server can do so.
    """

    def __init__(self, scope: Scope, send: Send, request_id: bytes) -> None:
        server = getattr(send, "__self__", None)
        self.send_now: SendNow | None = getattr(server, "send_now", None)
        self._scope = scope
        self._send = send
        self._header = (b"x-request-id", request_id)
        self._began = perf_counter()

    def __call__(self, message: Message) -> Awaitable[None]:
        """Send a message."""
        if message["type"] == "http.response.start":
            self._scope[STARTED] = True
            took = (b"openai-processing-ms", b"%d" % ((perf_counter() - self._began) * 1000))
            message["headers"] = [*message.get("headers", ()), self._header, took]
        return self._send(message)


class Errors:
    """Answers what the handlers raise, inside of ``RequestId``.

    After the head has gone out nothing can be answered.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except ClientGone as error:
            _free(error)
        except Exception as error:
            if not isinstance(error, HeadwayError | HTTPException):
                # The text of a foreign exception may hold content: its kind and place suffice.
                _log.error("request failed", exc_info=_without_text(error))
            if scope.get(STARTED):
                raise
            await answer_error(error, scope, send)
            _free(error)


async def answer_error(error: Exception, scope: Scope, send: Send) -> None:
    """Send the error answer for ``error``; headers noted in the scope go with it."""
    answer = answer_for(error)
    length = (b"content-length", b"%d" % len(answer.body))
    headers = [*answer.headers, length, *scope.get(EXTRA_HEADERS, ())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    body = b"" if scope["method"] == "HEAD" else answer.body
    await send({"type": "http.response.body", "body": body})


def _without_text(error: Exception) -> Exception:
    bare = RuntimeError(type(error).__qualname__)
    return bare.with_traceback(error.__traceback__)


def _free(error: BaseException) -> None:
    """Let go of the frames that an error and those before it came through.

    A frame that keeps its error is a circle, with the whole call in it. Many callers who leave at
    once would be garbage that holds up all others when it is collected.
    """
    errors: list[BaseException | None] = [error]
    while errors:
        known = errors.pop()
        if known is not None and known.__traceback__ is not None:
            known.__traceback__ = None
            errors += (known.__cause__, known.__context__)
