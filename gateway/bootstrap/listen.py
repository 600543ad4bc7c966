"""The listening socket, taken before anything else is started."""

import errno
import socket

from gateway.core.errors import PortInUse, StartError

_BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; ``port`` 0 picks a free one.

    Raises PortInUse, or StartError when the address cannot be used at all.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
    except OSError as error:
        raise StartError(f"{host}:{port} cannot be listened on: {error.strerror}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"{host}:{port} is in use; stop what listens there or give another --port"
            ) from None
        raise StartError(f"{host}:{port} cannot be listened on: {error.strerror}") from None
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """The base URL a client on this machine uses, ending in ``/v1``."""
    host, port = listener.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"
