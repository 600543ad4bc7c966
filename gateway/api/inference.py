"""The endpoints that run a model: read, check, classify, admit, route, answer, record."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send

from gateway.api.auth import CALLER
from gateway.api.body import BodyLimits, parsed, read_body
from gateway.api.calls import Call, CallParts, class_headers
from gateway.api.deferred import prefers_async
from gateway.api.disconnect import DisconnectWatcher
from gateway.api.errors import RawHeaders, status_of
from gateway.api.middleware import EXTRA_HEADERS, REQUEST_ID, STARTED
from gateway.api.plain import answer_plain
from gateway.api.streaming import answer_stream
from gateway.core.errors import ClientError, ClientGone, Draining, HeadwayError
from gateway.core.large_json import LARGE, let_go
from gateway.metering.record import CallStatus
from gateway.routing.classifier import CallFacts
from gateway.schemas.requests import ModelRequest

#: Answers a call that is not streamed.
Plain = Callable[[Call, Send], Awaitable[None]]


class Inference:
    """One endpoint as an ASGI application. ``path`` is its canonical one, with ``/v1``."""

    def __init__(
        self,
        path: str,
        parse: Callable[[bytes], ModelRequest],
        parts: CallParts,
        limits: BodyLimits,
        plain: Plain = answer_plain,
    ) -> None:
        self.path = path
        self._parse = parse
        self._parts = parts
        self._limits = limits
        self._plain = plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        try:
            body = await read_body(scope, receive, self._limits.size)
            request = await parsed(self._parse, body, self._limits.parts)
        except ClientError:
            scope[EXTRA_HEADERS] = class_without_body(self._parts, self.path, scope)
            raise
        deferred = self._parts.deferred
        if deferred is not None and prefers_async(scope["headers"]):
            await deferred.accept(self.path, request, scope, receive, send)
            return
        call = Call(self._parts, scope[CALLER], self.path, request, scope[REQUEST_ID])
        try:
            await serve(call, scope, receive, send, self._plain)
        finally:
            if request.prompt_bytes > LARGE:
                asyncio.get_running_loop().run_in_executor(None, let_go, request.members)


def class_without_body(parts: CallParts, path: str, scope: Scope) -> RawHeaders:
    """The class of a call whose body tells nothing."""
    caller = scope[CALLER]
    facts = CallFacts(path, "", dict(scope["headers"]), {}, 1, caller.key_id, caller.tenant)
    return class_headers(parts.classifier.classify(facts, caller.ceiling))


async def serve(
    call: Call, scope: Scope, receive: Receive, send: Send, plain: Plain = answer_plain
) -> None:
    """Answer ``call``, watching for the client's leaving; its record is settled in every case.

    Settling never waits, so a cancellation cannot come between.
    """
    watcher = call.watcher = DisconnectWatcher(receive)
    try:
        call.begin(scope["headers"])
        if call.request.stream:
            await answer_stream(call, send)
        else:
            await plain(call, send)
    except asyncio.CancelledError:
        error: HeadwayError = ClientGone("The caller closed the connection.")
        status = CallStatus.CANCELLED
        if not watcher.gone:  # then the process ends
            error, status = Draining("The gateway is shutting down."), CallStatus.INTERRUPTED
        call.settle(status, status_of(error))
        task = asyncio.current_task()
        again = task is not None and task.uncancel() > 0
        if again or (scope.get(STARTED) and not watcher.gone):
            raise
        raise error from None
    except Exception as error:
        call.settle(CallStatus.FAILED, status_of(error))
        scope[EXTRA_HEADERS] = call.headers()
        raise
    finally:
        watcher.close()
