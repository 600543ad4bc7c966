"""``headway serve-one``: one of the gateway processes of a ``headway serve --workers N``.

It gets its listening socket from its parent, which also started everything else.
"""

import asyncio
import socket
from collections.abc import Sequence

import uvloop

from gateway.bootstrap.gateway import build_gateway
from gateway.bootstrap.local import parse_addresses, with_addresses
from gateway.bootstrap.process import handle_signals, quiet_garbage_collector
from gateway.bootstrap.server import server_for
from gateway.bootstrap.share import Share, share_of
from gateway.bootstrap.store_url import store_url
from gateway.core.clock import SystemClock
from gateway.core.errors import ConfigError
from gateway.core.settings import Settings
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy
from gateway.telemetry.logs import set_up_logs


def run_serve_one(settings: Settings, local: Sequence[str], fd: int, share: Share) -> None:
    """Serve on the socket ``fd`` until SIGTERM. ``local`` are texts NAME=URL."""
    set_up_logs(settings.log_level)
    whole = with_addresses(load_policy(settings.policy), parse_addresses(local))
    policy = share_of(whole, share.index, share.count)
    with socket.socket(fileno=fd) as listener:
        uvloop.run(_serve(settings, policy, listener, share))


async def _serve(settings: Settings, policy: Policy, listener: socket.socket, share: Share) -> None:
    if settings.api_key is None:
        raise ConfigError("HEADWAY_API_KEY is not set; this command is run by `headway serve`")
    stop, clock = asyncio.Event(), SystemClock()
    key = settings.api_key.get_secret_value()
    gateway = await build_gateway(settings, policy, store_url(settings), key, clock, share)
    try:
        server = server_for(gateway.app, settings)
        handle_signals(stop, server.hurry)
        quiet_garbage_collector()
        serving = asyncio.create_task(server.serve([listener]))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        gateway.drain()
        await server.finish(clock, settings.grace_seconds)
        await serving
        stopping.cancel()
    finally:
        await gateway.aclose()
