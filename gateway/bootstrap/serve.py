"""``headway serve``: the gateway and everything it needs, in order of start.

Address, queue server, children, gateway. At the end: dispatcher, gateway, workers, queue server;
the workers stay until the gateway's running streams have ended. Nothing started here outlives the
process, however it ends.
"""

import asyncio
import contextlib
import gc
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from gateway.bootstrap.announce import Announcement, Announcer
from gateway.bootstrap.children import Children
from gateway.bootstrap.data_dir import ready_data_dir, room_in
from gateway.bootstrap.gateway import build_gateway
from gateway.bootstrap.greeting import greet, say_ready
from gateway.bootstrap.listen import listen, url_of
from gateway.bootstrap.local import pick_addresses, with_addresses
from gateway.bootstrap.server import GatewayServer
from gateway.bootstrap.specs import DISPATCHER, dispatcher_spec, worker_specs
from gateway.core.clock import Clock, SystemClock
from gateway.core.errors import PortInUse
from gateway.core.settings import Settings
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy
from gateway.store.embedded import EmbeddedServer
from gateway.telemetry.logs import set_up_logs
from gateway.tenancy.keyfile import load_or_make_key

Watch = Callable[[], Coroutine[Any, Any, object]]

_GC_THRESHOLDS = (20_000, 20, 50)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was settled before the event loop starts."""

    settings: Settings
    policy: Policy
    redis_url: str
    key: str
    local: Mapping[str, str]
    children: Children
    clock: Clock


def run_serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError or StartError when it cannot start."""
    set_up_logs(settings.log_level)
    policy = load_policy(settings.policy)
    ready_data_dir(settings.data_dir)
    with room_in(settings.data_dir), _listener(settings) as listener:
        key, made = _client_key(settings)
        with _queue_server(settings) as (redis_url, watch_queue):
            local = pick_addresses(policy)
            announcement = Announcement(url_of(listener), os.getpid(), local)
            announcer = Announcer(settings.data_dir, announcement)
            announcer.try_once()
            greet(settings, announcement.base_url, key if made else None)
            plan = _plan(settings, policy, redis_url, local, key)
            beside = (watch_queue, announcer.run)
            try:
                uvloop.run(_serve(plan, listener, beside))
            finally:
                announcer.withdraw()


def _listener(settings: Settings) -> socket.socket:
    """The listening socket. Of two faults the one that another --port cannot mend is told."""
    try:
        return listen(settings.host, settings.port)
    except PortInUse:
        if settings.redis_url is None:
            EmbeddedServer(settings.data_dir, settings).check_free()
        raise


@contextlib.contextmanager
def _queue_server(settings: Settings) -> Iterator[tuple[str, Watch]]:
    """The queue server's URL, and what keeps it running.

    Ours is started here, from the main thread before any loop, and stopped last.
    """
    if settings.redis_url is not None:
        yield settings.redis_url.get_secret_value(), asyncio.Event().wait
        return
    server = EmbeddedServer(settings.data_dir, settings)
    url = server.start()
    try:
        yield url, server.watch
    finally:
        server.stop()


def _client_key(settings: Settings) -> tuple[str, bool]:
    """The key of a simple set-up, and whether it was made just now."""
    if settings.api_key is not None:
        return settings.api_key.get_secret_value(), False
    return load_or_make_key(settings.data_dir)


def _plan(
    settings: Settings, policy: Policy, redis_url: str, local: Mapping[str, str], key: str
) -> _Plan:
    clock = SystemClock()
    dispatchers = [dispatcher_spec(settings, redis_url, local)] * settings.dispatchers
    specs = [*dispatchers, *worker_specs(settings, policy, local)]
    policy = with_addresses(policy, local)
    return _Plan(settings, policy, redis_url, key, local, Children(specs, clock), clock)


async def _serve(plan: _Plan, listener: socket.socket, beside: Sequence[Watch]) -> None:
    stop = asyncio.Event()
    plan.children.start()
    async with contextlib.AsyncExitStack() as ending:
        ending.push_async_callback(plan.children.stop)
        gateway = await build_gateway(
            plan.settings, plan.policy, plan.redis_url, plan.key, plan.clock
        )
        ending.push_async_callback(gateway.aclose)
        server = GatewayServer(
            gateway.app,
            log_level=plan.settings.log_level,
            receive_seconds=plan.settings.receive_seconds,
            send_seconds=plan.settings.send_seconds,
            trusted_proxies=plan.settings.trusted_proxies,
        )
        _handle_signals(stop, server)
        _quiet_garbage_collector()
        watching = [
            asyncio.create_task(plan.children.watch()),
            *(asyncio.create_task(watch()) for watch in beside),
        ]
        ready = asyncio.create_task(say_ready(plan.local))
        serving = asyncio.create_task(server.serve([listener]))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([serving, stopping, *watching], return_when=asyncio.FIRST_COMPLETED)
        gateway.drain()
        watching[0].cancel()
        await asyncio.gather(
            plan.children.stop_one(DISPATCHER),
            server.finish(plan.clock, plan.settings.grace_seconds),
        )
        await serving
        for task in (*watching, stopping, ready):
            task.cancel()
        for task in watching:
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _handle_signals(stop: asyncio.Event, server: GatewayServer) -> None:
    """SIGTERM and SIGINT end the process in order; a second one does not wait for calls."""

    def ask() -> None:
        if stop.is_set():
            server.should_exit = True
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ask)


def _quiet_garbage_collector() -> None:
    """What was made at start stays for good: not worth looking at again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
