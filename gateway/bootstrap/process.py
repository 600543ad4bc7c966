"""What a process that serves does with signals and with its memory."""

import asyncio
import gc
import signal
from collections.abc import Callable

#: A stream holds 150 objects: below what 600 of them hold, their coming and going is no reason.
_GC_THRESHOLDS = (100_000, 20, 50)


def handle_signals(stop: asyncio.Event, hurry: Callable[[], None]) -> None:
    """SIGTERM and SIGINT set ``stop``: the process ends in order. A second one calls ``hurry``."""

    def ask() -> None:
        if stop.is_set():
            hurry()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ask)


def quiet_garbage_collector() -> None:
    """What was made at start stays for good: not worth looking at again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
