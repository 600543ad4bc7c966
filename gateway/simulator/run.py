"""Serves a simulated engine until SIGTERM."""

import asyncio
import gc
import logging
import signal
import socket

import uvicorn
import uvloop

from gateway.core.clock import SystemClock
from gateway.core.quick_server import QuickServer, bound
from gateway.simulator.clockwork import Clockwork
from gateway.simulator.engine import Engine
from gateway.simulator.options import EngineOptions
from gateway.simulator.server import EngineApp

log = logging.getLogger(__name__)


def run_engine(options: EngineOptions) -> None:
    """Serve until SIGTERM or SIGINT. Raises PortInUse."""
    with (
        bound(options.host, options.port, "the engine") as listener,
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
    server = QuickServer(config)
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
