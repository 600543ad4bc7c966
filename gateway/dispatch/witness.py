"""Tells a dead target from one lost connection.

When a process dies, the system closes all its connections at once. So a lost connection means a
crash when, shortly after, no attempt that was in flight beside it is still running or came back
with an answer. One that was alone has no witness: then it is taken for a crash as well, and the
queue's rule about rows that crash alone decides about it.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

GRACE = 0.25


class Sign(Enum):
    """What the end of an attempt says about the target."""

    ANSWERED = auto()
    THROTTLED = auto()
    FAILED = auto()
    REJECTED = auto()
    REFUSED = auto()
    LOST = auto()
    STOPPED = auto()


#: Signs of a process that lives; REJECTED says that it does not accept our credential.
ALIVE = frozenset({Sign.ANSWERED, Sign.THROTTLED, Sign.FAILED, Sign.REJECTED})


@dataclass(slots=True, eq=False)
class Attempt:
    """One call of a row; ``sign`` is None while it runs."""

    sign: Sign | None = None


async def crashed(beside: Iterable[Attempt]) -> bool:
    """Whether the target died, judged by the attempts ``beside`` a quarter of a second later."""
    attempts = tuple(beside)
    await asyncio.sleep(GRACE)
    return not any(attempt.sign is None or attempt.sign in ALIVE for attempt in attempts)
