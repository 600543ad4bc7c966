"""Noticing that the client left."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from gateway.api.disconnect import DisconnectWatcher


async def test_leaving_cancels_the_call() -> None:
    """The task is cancelled and can tell why."""
    left = asyncio.Event()
    seen: list[bool] = []

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def call() -> None:
        watcher = DisconnectWatcher(receive)
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            seen.append(watcher.gone)
            raise
        finally:
            watcher.close()

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    left.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [True]


async def test_nothing_happens_after_close() -> None:
    """A call that is done is not cancelled, and a short one is never watched."""
    asked = 0

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"type": "http.disconnect"}

    watcher = DisconnectWatcher(receive)
    watcher.close()
    await asyncio.sleep(0.08)
    assert (asked, watcher.gone) == (0, False)


async def test_a_watcher_is_gone_with_its_call() -> None:
    """What watched a call is no circle that only a collection finds."""

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(5)
        return {"type": "http.disconnect"}

    gc.disable()
    try:
        watcher = DisconnectWatcher(receive)
        await asyncio.sleep(0.08)
        watcher.close()
        await asyncio.sleep(0)
        held = weakref.ref(watcher)
        del watcher
        await asyncio.sleep(0)
        assert held() is None
    finally:
        gc.enable()
