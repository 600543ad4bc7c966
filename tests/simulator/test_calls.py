"""A call and its sequence."""

import asyncio

import pytest

from gateway.simulator.calls import Call
from gateway.simulator.clockwork import Clockwork
from gateway.simulator.engine import Engine
from gateway.simulator.requests import Wanted
from tests.support.simulated import PROFILE


def _call(clockwork: Clockwork, *, stream: bool) -> Call:
    return Call(clockwork, Wanted(True, 10, 3, "length", 0, stream, False))


@pytest.mark.parametrize("stream", [True, False])
async def test_a_stream_hears_every_token_and_a_plain_call_its_end(stream: bool) -> None:
    """The wait ends when there is something to say."""
    clockwork = Clockwork(Engine(PROFILE), 1.0)
    running = asyncio.create_task(clockwork.run())
    heard: list[int] = []
    with _call(clockwork, stream=stream) as call:
        while not call.over:
            heard.append(await call.heard(heard[-1] if heard else 0))
    running.cancel()
    assert heard == ([1, 2, 3] if stream else [3])


async def test_a_call_that_ends_early_leaves_the_engine() -> None:
    """However its end came."""
    clockwork = Clockwork(Engine(PROFILE), 1.0)
    with _call(clockwork, stream=True):
        assert clockwork.engine.waiting == 1
    assert clockwork.engine.idle


async def test_a_client_that_leaves_ends_the_wait() -> None:
    """And frees its place."""
    clockwork = Clockwork(Engine(PROFILE), 1.0)
    with _call(clockwork, stream=False) as call:
        waiting = asyncio.create_task(call.heard(0))
        await asyncio.sleep(0)
        call.leave()
        assert await waiting == 0
    assert clockwork.engine.idle
    assert call.failed
