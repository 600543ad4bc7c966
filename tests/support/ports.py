"""Ports for servers that must be told theirs."""

import itertools
import os
import socket

_FIRST, _MANY, _APART = 20_000, 12_000, 331


def free_port() -> int:
    """A port on which nobody listens now.

    It lies below those that the system gives to whoever asks for any, so that no other test gets it
    before it is taken. Processes of a test run begin at places far apart.
    """
    for port in _ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("there is always a next port")


def _from_here() -> "itertools.cycle[int]":
    start = os.getpid() * _APART
    return itertools.cycle([_FIRST + (start + step) % _MANY for step in range(_MANY)])


_ports = _from_here()
