"""A connection that ends waits for what is on its way, not for more."""

import asyncio
from typing import Any, cast

import pytest

from gateway.api import linger
from gateway.api.linger import Linger


class _Wire:
    """Notes that our side was shut."""

    shut = False

    def write_eof(self) -> None:
        self.shut = True


class _Ending:
    """A connection that lingers."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.closed = asyncio.Event()
        self.wire = _Wire()
        loop = asyncio.get_running_loop()
        self.linger = Linger(cast("Any", self.wire), loop, seconds, self.closed.set)

    async def within(self, seconds: float) -> bool:
        """Whether it closes in this time."""
        try:
            await asyncio.wait_for(self.closed.wait(), seconds)
        except TimeoutError:
            return False
        return True


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linger, "QUIET_SECONDS", 0.6)
    monkeypatch.setattr(linger, "MOST_DROPPED", 1000)


async def test_silence_ends_it() -> None:
    """Our side is shut at once, all of it after a pause."""
    ending = _Ending()
    assert ending.wire.shut
    assert not await ending.within(0.1)
    assert await ending.within(5)


@pytest.mark.parametrize(("seconds", "ends"), [(10.0, False), (0.5, True)])
async def test_bytes_keep_it_open_for_a_time(seconds: float, ends: bool) -> None:
    """As long as some come, but not for ever."""
    ending = _Ending(seconds)
    for _ in range(10):
        ending.linger.take(1)
        await asyncio.sleep(0.1)
    assert ending.closed.is_set() is ends
    ending.linger.stop()


async def test_the_amount_is_bounded() -> None:
    """Who sends more than that is not listened to any longer."""
    ending = _Ending()
    ending.linger.take(1000)
    assert not ending.closed.is_set()
    ending.linger.take(1)
    assert ending.closed.is_set()
    ending.linger.stop()


async def test_the_end_of_the_process_is_waited_for_less() -> None:
    """Whatever still comes."""
    ending = _Ending()
    ending.linger.take(1)
    ending.linger.hurry()
    assert await ending.within(0.4)


async def test_a_lost_connection_is_not_closed_again() -> None:
    """Nothing happens after ``stop``."""
    ending = _Ending()
    ending.linger.stop()
    assert not await ending.within(0.8)
