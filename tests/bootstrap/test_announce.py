"""A running gateway can be found by its data directory."""

import asyncio
from pathlib import Path

from gateway.bootstrap.announce import Announcement, Announcer, announce, announced

_ONE, _TWO = (Announcement(f"http://127.0.0.1:{n}/v1", n) for n in (1, 2))


def test_what_was_announced_is_read(tmp_path: Path) -> None:
    """Another process sees the same values."""
    mine = Announcement("http://127.0.0.1:1/v1", 1, {"local": "http://127.0.0.1:2/v1"})
    announce(tmp_path, mine)
    assert announced(tmp_path) == mine


def test_nothing_or_rubbish_is_nothing(tmp_path: Path) -> None:
    """A missing or broken file is no gateway."""
    assert announced(tmp_path) is None
    (tmp_path / "gateway.json").write_text("{")
    assert announced(tmp_path) is None


async def test_the_first_of_several_is_announced(tmp_path: Path) -> None:
    """A second one changes nothing, also when it ends; it takes over when the first has ended."""
    first, second, third = (Announcer(tmp_path, one) for one in (_ONE, _TWO, _TWO))
    assert first.try_once()
    assert not third.try_once()
    third.withdraw()
    assert announced(tmp_path) == _ONE
    waiting = asyncio.create_task(second.run(every=0.01))
    await asyncio.sleep(0.05)
    assert announced(tmp_path) == _ONE
    first.withdraw()
    async with asyncio.timeout(5):
        while announced(tmp_path) != _TWO:  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.01)
    waiting.cancel()
    second.withdraw()
    assert announced(tmp_path) is None


def test_what_a_dead_one_left_is_replaced(tmp_path: Path) -> None:
    """Its file says nothing: its lock went with it."""
    announce(tmp_path, _ONE)
    assert Announcer(tmp_path, _TWO).try_once()
    assert announced(tmp_path) == _TWO
