"""``headway serve``: the gateway and everything it needs, in order of start.

Address, queue server, children, gateway. At the end: dispatcher, gateway, workers, queue server;
the workers stay until the gateway's running streams have ended. Nothing started here outlives the process, however it ends.
"""

import asyncio
import contextlib
import gc
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import uvloop

from gateway.bootstrap.announce import Announcement, announce, withdraw
from gateway.bootstrap.children import Children
from gateway.bootstrap.gateway import build_gateway
from gateway.bootstrap.listen import listen, url_of
from gateway.bootstrap.local import pick_addresses, with_addresses
from gateway.bootstrap.server import GatewayServer
from gateway.bootstrap.specs import DISPATCHER, dispatcher_spec, worker_specs
from gateway.core.clock import Clock, SystemClock
from gateway.core.settings import Settings
from gateway.policy.loader import load_policy
from gateway.policy.model import Policy
from gateway.store.embedded import EmbeddedServer
from gateway.telemetry.logs import set_up_logs
from gateway.tenancy.keyfile import load_or_make_key

_GC_THRESHOLDS = (20_000, 20, 50)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was settled before the event loop starts."""

    settings: Settings
    policy: Policy
    redis_url: str
    key: str
    children: Children
    clock: Clock


def run_serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError or StartError when it cannot start."""
    set_up_logs(settings.log_level)
    policy = load_policy(settings.policy)
    with listen(settings.host, settings.port) as listener:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        key, made = _client_key(settings)
        with _queue_server(settings) as redis_url:
            local = pick_addresses(policy)
            announcement = Announcement(url_of(listener), os.getpid(), local)
            announce(settings.data_dir, announcement)
            _greet(settings, announcement, key if made else None)
            plan = _plan(settings, policy, redis_url, local, key)
            try:
                uvloop.run(_serve(plan, listener))
            finally:
                withdraw(settings.data_dir)


@contextlib.contextmanager
def _queue_server(settings: Settings) -> Iterator[str]:
    """The URL of the queue server; ours is started here, before any thread, and stopped last."""
    if settings.redis_url is not None:
        yield settings.redis_url.get_secret_value()
        return
    server = EmbeddedServer(settings.data_dir, settings)
    url = server.start()
    try:
        yield url
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
    return _Plan(settings, policy, redis_url, key, Children(specs, clock), clock)


def _greet(settings: Settings, announcement: Announcement, new_key: str | None) -> None:
    """A short word to the person who started it; a key is shown once, when it is made."""
    if new_key is not None:
        where = f"{new_key} (kept in {settings.data_dir / 'api_key'})"
    elif settings.api_key is not None:
        where = "as set in HEADWAY_API_KEY"
    else:
        where = f"in {settings.data_dir / 'api_key'}"
    print(f"Headway serves at {announcement.base_url}\nkey: {where}", flush=True)  # noqa: T201


async def _serve(plan: _Plan, listener: socket.socket) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    plan.children.start()
    watching = asyncio.create_task(plan.children.watch())
    gateway = await build_gateway(
        plan.settings, plan.policy, plan.redis_url, plan.key, plan.clock
    )
    server = GatewayServer(gateway.app, log_level=plan.settings.log_level)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await asyncio.wait(
            [serving, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        gateway.drain()
        watching.cancel()
        finishing = asyncio.create_task(server.finish(plan.clock, plan.settings.grace_seconds))
        await plan.children.stop_one(DISPATCHER)
        await finishing
        await serving
        await plan.children.stop()
        await gateway.aclose()
