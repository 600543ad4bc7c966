"""Turning new calls away while the process ends."""

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.errors import Draining

_RETRY_AFTER = 1.0


class DrainFlag:
    """Set once, when the process has been told to end."""

    def __init__(self) -> None:
        self.draining = False

    def drain(self) -> None:
        """Take no new calls from now on; those that run go on."""
        self.draining = True


class Drain:
    """Raises Draining for every path but ``open_paths`` once the flag is set."""

    def __init__(self, app: ASGIApp, flag: DrainFlag, open_paths: frozenset[str]) -> None:
        self._app = app
        self._flag = flag
        self._open = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if self._flag.draining and scope["type"] == "http" and scope["path"] not in self._open:
            raise Draining("The gateway is shutting down.", retry_after=_RETRY_AFTER)
        await self._app(scope, receive, send)
