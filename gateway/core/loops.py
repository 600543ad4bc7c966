"""Background work that goes on: step after step, whatever one of them meets."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from gateway.core.errors import HeadwayError

log = logging.getLogger(__name__)

_ERROR_PAUSE = 1.0
_LONGEST_PAUSE = 4.0


async def keep_doing(
    step: Callable[[], Awaitable[object]],
    name: str,
    *,
    every: float,
    busy: bool = False,
    wake: asyncio.Event | None = None,
) -> None:
    """Take steps until cancelled, ``every`` seconds apart or when ``wake`` is set.

    With ``busy`` a step that found something (is true) is followed by the next one at once. A
    fault of a step is logged and is no end: the pause after it is 1 second longer, then 2, then 4.
    """
    faults = 0
    while True:
        found: object = None
        try:
            found = await step()
        except HeadwayError as error:
            faults += 1
            log.warning("%s waits: %s", name, error.message)
        except Exception:
            faults += 1
            log.exception("%s waits", name)
        else:
            if faults:
                log.info("%s goes on", name)
            faults = 0
        if faults:
            await asyncio.sleep(min(_ERROR_PAUSE * 2 ** min(faults - 1, 8), _LONGEST_PAUSE))
        if not (busy and found):
            await _pause(every, wake)


async def _pause(seconds: float, wake: asyncio.Event | None) -> None:
    if wake is None:
        await asyncio.sleep(seconds)
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake.wait()
    wake.clear()
