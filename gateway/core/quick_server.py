"""How a model server of ours listens and ends: at once, as who waits there asks again elsewhere."""

import contextlib
import socket
from collections.abc import Generator

import uvicorn

from gateway.core.errors import PortInUse


class QuickServer(uvicorn.Server):
    """uvicorn that leaves signals to its process and does not wait for running calls."""

    def leave(self) -> None:
        """Stop without waiting for running calls."""
        self.should_exit = True
        self.force_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing: the process has handlers of its own."""
        yield


def bound(host: str, port: int, who: str) -> socket.socket:
    """A bound socket, which takes clients once it is served. Raises PortInUse, naming ``who``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortInUse(f"{who} cannot listen on {host}:{port}: {error.strerror}") from None
    return listener
