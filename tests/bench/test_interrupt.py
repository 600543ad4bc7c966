"""Stopping a benchmark."""

import asyncio
import os
import signal

import pytest

from gateway.bench.interrupt import run_interruptible
from gateway.core.errors import BenchmarkFailed


def test_what_ends_by_itself_gives_its_result() -> None:
    """Result and error come through."""

    async def good() -> int:
        return 7

    async def bad() -> int:
        raise BenchmarkFailed("no")

    assert run_interruptible(good()) == 7
    with pytest.raises(BenchmarkFailed):
        run_interruptible(bad())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_lost_cancellation_is_made_again(number: int) -> None:
    """Work that loses the first one stops at the next, with its clean-up done."""
    seen = []

    async def stubborn() -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("lost")
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(stubborn())
    assert seen == ["lost", "cleaned up"]
