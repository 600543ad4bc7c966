"""``headway serve``: the gateway and everything it needs, in order of start.

Address, queue server, children, gateway; several gateways are children, too. At the end:
dispatcher, gateway, workers, queue server; the workers stay until the running streams have ended.
Nothing started here outlives the process, however it ends.
"""

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from gateway.bootstrap.announce import Announcement, Announcer
from gateway.bootstrap.children import Children, ChildSpec
from gateway.bootstrap.data_dir import ready_data_dir, room_in
from gateway.bootstrap.gateway import build_gateway
from gateway.bootstrap.greeting import greet, say_ready
from gateway.bootstrap.listen import listen_together, url_of
from gateway.bootstrap.local import pick_addresses, with_addresses
from gateway.bootstrap.process import handle_signals, quiet_garbage_collector
from gateway.bootstrap.server import server_for
from gateway.bootstrap.share import share_of
from gateway.bootstrap.specs import (
    DISPATCHER,
    GATEWAY,
    dispatcher_spec,
    gateway_specs,
    worker_specs,
)
from gateway.core.clock import Clock, SystemClock
from gateway.core.errors import PortInUse
from gateway.core.settings import Settings
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy
from gateway.store.embedded import EmbeddedServer
from gateway.telemetry.logs import set_up_logs
from gateway.tenancy.keyfile import load_or_make_key

Watch = Callable[[], Coroutine[Any, Any, object]]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was settled before the event loop starts."""

    settings: Settings
    policy: Policy
    redis_url: str
    key: str
    local: Mapping[str, str]
    listeners: Sequence[socket.socket]
    clock: Clock = field(default_factory=SystemClock)


def run_serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError or StartError when it cannot start."""
    set_up_logs(settings.log_level)
    policy = load_policy(settings.policy)
    ready_data_dir(settings.data_dir)
    for index in range(settings.workers) if settings.workers > 1 else ():
        share_of(policy, index, settings.workers)
    with room_in(settings.data_dir), _listening(settings) as listeners:
        key, made = _client_key(settings)
        with _queue_server(settings) as (redis_url, watch_queue):
            local = pick_addresses(policy)
            announcement = Announcement(url_of(listeners[0]), os.getpid(), local)
            announcer = Announcer(settings.data_dir, announcement)
            announcer.try_once()
            greet(settings, announcement.base_url, key if made else None)
            plan = _Plan(settings, policy, redis_url, key, local, listeners)
            beside = (watch_queue, announcer.run)
            try:
                _run(plan, beside)
            finally:
                announcer.withdraw()


def _run(plan: "_Plan", beside: Sequence[Watch]) -> None:
    if plan.settings.workers == 1:
        uvloop.run(_serve(plan, _children(plan, []), beside))
        return
    secrets = {"HEADWAY_REDIS_URL": plan.redis_url, "HEADWAY_API_KEY": plan.key}
    with tempfile.TemporaryDirectory(prefix="headway-") as folder:
        gateways = gateway_specs(plan.settings, secrets, plan.local, plan.listeners, Path(folder))
        uvloop.run(_supervise(plan, _children(plan, gateways), beside))


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[list[socket.socket]]:
    """A listening socket for each process that serves.

    Of two faults the one that another --port cannot mend is told.
    """
    try:
        listeners = listen_together(settings.host, settings.port, settings.workers)
    except PortInUse:
        if settings.redis_url is None:
            EmbeddedServer(settings.data_dir, settings).check_free()
        raise
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


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


def _children(plan: _Plan, gateways: Sequence[ChildSpec]) -> Children:
    settings = plan.settings
    dispatchers = [dispatcher_spec(settings, plan.redis_url, plan.local)] * settings.dispatchers
    workers = worker_specs(settings, plan.policy, plan.local)
    return Children([*dispatchers, *gateways, *workers], plan.clock)


async def _serve(plan: _Plan, children: Children, beside: Sequence[Watch]) -> None:
    """Serve in this process."""
    stop = asyncio.Event()
    children.start()
    async with contextlib.AsyncExitStack() as ending:
        ending.push_async_callback(children.stop)
        policy = with_addresses(plan.policy, plan.local)
        gateway = await build_gateway(plan.settings, policy, plan.redis_url, plan.key, plan.clock)
        ending.push_async_callback(gateway.aclose)
        server = server_for(gateway.app, plan.settings)
        handle_signals(stop, server.hurry)
        quiet_garbage_collector()
        async with _watching(plan, children, beside) as watching:
            serving = asyncio.create_task(server.serve(list(plan.listeners)))
            await _first(stop, [serving, *watching])
            gateway.drain()
            watching[0].cancel()
            await asyncio.gather(
                children.stop_one(DISPATCHER),
                server.finish(plan.clock, plan.settings.grace_seconds),
            )
            await serving


async def _supervise(plan: _Plan, children: Children, beside: Sequence[Watch]) -> None:
    """Have several processes serve."""
    stop = asyncio.Event()
    children.start()
    handle_signals(stop, lambda: children.hurry(GATEWAY))
    async with contextlib.AsyncExitStack() as ending:
        ending.push_async_callback(children.stop)
        async with _watching(plan, children, beside) as watching:
            await _first(stop, watching)
            watching[0].cancel()
            # A process that has ended shall not leave callers waiting at a socket of ours.
            for listener in plan.listeners:
                listener.close()
            await asyncio.gather(children.stop_one(DISPATCHER), children.stop_one(GATEWAY))


@contextlib.asynccontextmanager
async def _watching(
    plan: _Plan, children: Children, beside: Sequence[Watch]
) -> AsyncIterator[list[asyncio.Task[object]]]:
    """What runs beside; the children's is the first. A fault of one is raised at the end."""
    watching = [
        asyncio.create_task(children.watch()),
        *(asyncio.create_task(watch()) for watch in beside),
    ]
    ready = asyncio.create_task(say_ready(plan.local))
    yield watching
    for task in (*watching, ready):
        task.cancel()
    for task in watching:
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _first(stop: asyncio.Event, tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait until the process is to end, or one of ``tasks`` has."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
