"""Ctrl-C for a benchmark: asked once, it stops."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

_ASK_AGAIN_SECONDS = 0.5

T = TypeVar("T")


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in a loop of its own, in the main thread.

    SIGINT and SIGTERM cancel it, again and again until it has ended: one cancellation can be lost
    in a library that was just raising an error of its own. Raises KeyboardInterrupt then.
    """
    return asyncio.run(_watched(work))


async def _watched(work: Coroutine[Any, Any, T]) -> T:
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    task = asyncio.ensure_future(work)
    asked = asyncio.ensure_future(interrupted.wait())
    await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
    if not interrupted.is_set():
        asked.cancel()
        return task.result()
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=_ASK_AGAIN_SECONDS)
    raise KeyboardInterrupt
