"""The children of ``headway serve``: one dispatcher, one worker per local target, gateways."""

import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gateway.bootstrap.children import ChildSpec
from gateway.core.settings import Settings
from gateway.policy.model import Policy

DISPATCHER = "dispatcher"
GATEWAY = "gateway"
_DISPATCHER_STOP = 10.0
_WORKER_STOP = 5.0
_GATEWAY_STOP = 10.0  # after the grace time


def dispatcher_spec(settings: Settings, redis_url: str, local: Mapping[str, str]) -> ChildSpec:
    """``headway dispatch`` on the queue at ``redis_url``; the URL travels in the environment."""
    argv = [*_command("dispatch", settings), "--data-dir", str(settings.data_dir)]
    for name, url in local.items():
        argv += ["--local", f"{name}={url}"]
    return ChildSpec(DISPATCHER, argv, {"HEADWAY_REDIS_URL": redis_url}, _DISPATCHER_STOP)


def worker_specs(settings: Settings, policy: Policy, local: Mapping[str, str]) -> list[ChildSpec]:
    """``headway worker`` for each local target whose address was picked here."""
    specs = []
    for name, url in local.items():
        assert name in policy.targets
        place = urlsplit(url)
        argv = [*_command("worker", settings), "--target", name]
        argv += ["--host", str(place.hostname), "--port", str(place.port)]
        specs.append(ChildSpec(f"worker {name}", argv, {}, _WORKER_STOP))
    return specs


def gateway_specs(
    settings: Settings,
    secrets: Mapping[str, str],
    local: Mapping[str, str],
    listeners: Sequence[socket.socket],
    folder: Path,
) -> list[ChildSpec]:
    """``headway serve-one`` for each of ``listeners``; ``secrets`` travel in the environment.

    The sockets stay open here: what comes in while a process is started again waits for it. They
    die with this process, so that the port is free for its successor.
    """
    command = [*_command("serve-one", settings), "--data-dir", str(settings.data_dir)]
    command += ["--folder", str(folder), "--of", str(len(listeners))]
    for name, url in local.items():
        command += ["--local", f"{name}={url}"]
    return [
        ChildSpec(
            GATEWAY,
            [*command, "--index", str(index), "--fd", str(listener.fileno())],
            secrets,
            settings.grace_seconds + _GATEWAY_STOP,
            fds=(listener.fileno(),),
            orphaned=signal.SIGKILL,
            vital=True,
        )
        for index, listener in enumerate(listeners)
    ]


def _command(name: str, settings: Settings) -> list[str]:
    argv = [sys.executable, "-m", "gateway", name, "--log-level", settings.log_level]
    return [*argv, "--policy", str(settings.policy)] if settings.policy else argv
