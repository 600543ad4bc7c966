"""uvicorn with our own way of ending: new calls are turned away while running ones finish."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import Any

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from gateway.api.protocol import limited
from gateway.bootstrap.acceptor import Acceptor
from gateway.core.clock import Clock
from gateway.core.settings import Settings

_LOOK_EVERY = 0.05
_CLOSE_SECONDS = 2


class GatewayServer(uvicorn.Server):
    """Leaves signals to the caller; ``finish`` ends it after its calls.

    ``receive_seconds`` bound a request's head, and each pause in its body; ``send_seconds`` the
    time in which a caller takes nothing of its answer. Who calls is told by X-Forwarded-For only
    when ``trusted_proxies`` is who is connected.
    """

    def __init__(
        self,
        app: Any,
        *,
        log_level: str,
        receive_seconds: float = 30.0,
        send_seconds: float = 60.0,
        trusted_proxies: str = "",
    ) -> None:
        if trusted_proxies:
            app = ProxyHeadersMiddleware(app, trusted_proxies)
        self._protocol_class = limited(receive_seconds, send_seconds)
        self._acceptors: list[Acceptor] = []
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                http=self._protocol_class,
                ws="none",
                lifespan="off",
                log_level="warning" if log_level == "info" else log_level,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_CLOSE_SECONDS,
                timeout_keep_alive=75,
                log_config=None,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections from ``sockets``, which listen already."""
        await super().startup([])
        self._acceptors = [Acceptor(listener, self._protocol) for listener in sockets or []]
        for acceptor in self._acceptors:
            acceptor.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and close those there are once their calls have ended."""
        for acceptor in self._acceptors:
            acceptor.close()
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self._protocol_class(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing: the process has handlers of its own."""
        yield

    def hurry(self) -> None:
        """Do not wait for calls any longer."""
        self.should_exit = True

    async def finish(self, clock: Clock, grace: float) -> None:
        """Wait for running calls, at most ``grace`` seconds, then let ``serve`` return.

        Calls that still run are cancelled, which has each of them say so to its caller.
        """
        deadline = clock.monotonic() + grace
        while self.server_state.tasks and not self.should_exit and clock.monotonic() < deadline:
            await clock.sleep(_LOOK_EVERY)
        for task in self.server_state.tasks:
            task.cancel()
        self.should_exit = True


def server_for(app: Any, settings: Settings) -> GatewayServer:
    """The server of a process with these settings."""
    return GatewayServer(
        app,
        log_level=settings.log_level,
        receive_seconds=settings.receive_seconds,
        send_seconds=settings.send_seconds,
        trusted_proxies=settings.trusted_proxies,
    )
