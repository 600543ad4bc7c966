"""Turns new calls away while the process is ending; running ones are left alone.

One that is called off when their time is over is told the same, if it has heard nothing yet.
"""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.api.health import OPEN_PATHS
from gateway.api.middleware import EXTRA_HEADERS, STARTED, answer_error
from gateway.core.errors import Draining
from gateway.core.ids import new_id

_RETRY_AFTER = 5.0


class Drain:
    """Outermost application. After ``begin`` every new call but a health check gets 503."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.draining = False

    def begin(self) -> None:
        """From now on."""
        self.draining = True

    async def serving(self) -> bool:
        """Whether new calls are taken; for the readiness probe."""
        return not self.draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or turn away one request."""
        if not self.draining or scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            try:
                await self._app(scope, receive, send)
            except asyncio.CancelledError:
                if not self.draining or scope["type"] != "http" or scope.get(STARTED):
                    raise
            else:
                return
        scope[EXTRA_HEADERS] = [
            (b"x-request-id", new_id("req").encode()),
            (b"connection", b"close"),
        ]
        error = Draining("The gateway is shutting down.", retry_after=_RETRY_AFTER)
        await answer_error(error, scope, send)
