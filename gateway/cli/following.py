"""Waiting for the end of a batch or a job, though its gateway may be away for a while."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from gateway.core.errors import Unavailable

AWAY_SECONDS = 60.0
_ENDED = {"completed", "failed", "expired", "cancelled"}


def until_ended(
    known: dict[str, Any],
    read: Callable[[str], dict[str, Any]],
    pauses: Iterator[float],
    seen: Callable[[dict[str, Any]], object] = lambda _: None,
) -> dict[str, Any]:
    """The object once it has ended; ``read`` gets it anew by its id, ``seen`` hears each time.

    Raises Unavailable when no gateway answers for a minute.
    """
    answered = time.monotonic()
    while known["status"] not in _ENDED:
        time.sleep(next(pauses))
        try:
            known = read(known["id"])
        except Unavailable:
            if time.monotonic() - answered > AWAY_SECONDS:
                raise
            continue
        answered = time.monotonic()
        seen(known)
    return known
