"""The engine as a process."""

import socket
import time

import pytest

from gateway.core.errors import PortInUse
from gateway.simulator.options import EngineOptions
from gateway.simulator.run import run_engine
from tests.support.simulated import PROFILE, engine_process


async def test_a_port_that_is_taken_is_a_sentence() -> None:
    """Not a traceback."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(PortInUse):
            run_engine(EngineOptions(PROFILE, port=other.getsockname()[1]))


async def test_it_ends_when_asked() -> None:
    """Whatever runs."""
    async with engine_process("--profile", "h200-8b"):
        asked = time.monotonic()
    assert time.monotonic() - asked < 5
