"""Signals and memory of a process that serves."""

import asyncio
import gc
import os
import signal

from gateway.bootstrap.process import handle_signals, quiet_garbage_collector


async def test_the_second_signal_hurries() -> None:
    """The first one asks to stop in order."""
    stop, hurried = asyncio.Event(), asyncio.Event()
    handle_signals(stop, hurried.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(stop.wait(), 2)
    assert not hurried.is_set()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait_for(hurried.wait(), 2)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().remove_signal_handler(number)


def test_what_was_made_at_start_is_not_looked_at_again() -> None:
    """It is frozen, and collections are rare."""
    before = gc.get_threshold()
    try:
        quiet_garbage_collector()
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
