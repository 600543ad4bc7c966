"""Serves a simulated engine until SIGTERM."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import Generator

import uvicorn
import uvloop

from gateway.core.clock import SystemClock
from gateway.core.errors import PortInUse
from gateway.simulator.clockwork import Clockwork
from gateway.simulator.engine import Engine
from gateway.simulator.options import EngineOptions
from gateway.simulator.server import EngineApp

log = logging.getLogger(__name__)


def run_engine(options: EngineOptions) -> None:
    """Serve until SIGTERM or SIGINT. Raises PortInUse."""
    with (
        _listen(options.host, options.port) as listener,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_serve(options, listener))


async def _serve(options: EngineOptions, listener: socket.socket) -> None:
    clockwork = Clockwork(Engine(options.profile, options.policy), options.scale)
    config = uvicorn.Config(
        EngineApp(clockwork, options, SystemClock()).app,
        log_level="warning",
        log_config=None,
        access_log=False,
        lifespan="off",
        http="httptools",
        ws="none",
        date_header=False,
        server_header=False,
    )
    server = _Server(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.leave)
    # A collection of everything would hold the steps up.
    gc.collect()
    gc.freeze()
    running = asyncio.create_task(clockwork.run())
    host, port = listener.getsockname()[:2]
    log.info("%s is simulated at http://%s:%d/v1", options.profile.name, host, port)
    try:
        await server.serve(sockets=[listener])
    finally:
        running.cancel()


class _Server(uvicorn.Server):
    """uvicorn, ending at once."""

    def leave(self) -> None:
        """Stop without waiting for running calls."""
        self.should_exit = True
        self.force_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing: ours are installed already."""
        yield


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortInUse(f"the engine cannot listen on {host}:{port}: {error.strerror}") from None
    return listener
