"""The listening sockets, taken before anything else is started."""

import errno
import socket

from gateway.core.errors import PortInUse, StartError

_BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; ``port`` 0 picks a free one.

    Raises PortInUse, or StartError when the address cannot be used at all.
    """
    listener = _bound(host, port)
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


def listen_together(host: str, port: int, count: int) -> list[socket.socket]:
    """``count`` sockets that listen on one port: the kernel shares new connections out.

    Raises as ``listen`` does, also when it is another such group that has the port.
    """
    if count == 1:
        return [listen(host, port)]
    # Sockets that may share a port would join whoever has it: asked for alone it is free or taken.
    with _bound(host, port) as asked:
        port = asked.getsockname()[1]
    listeners = [_bound(host, port, shared=True) for _ in range(count)]
    for listener in listeners:
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    return listeners


def _bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, proto)
    except OSError as error:
        raise StartError(f"{host}:{port} cannot be listened on: {error.strerror}") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"{host}:{port} is in use; stop what listens there or give another --port"
            ) from None
        raise StartError(f"{host}:{port} cannot be listened on: {error.strerror}") from None
    return bound


def url_of(listener: socket.socket) -> str:
    """The base URL a client on this machine uses, ending in ``/v1``."""
    host, port = listener.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"
