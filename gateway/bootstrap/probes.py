"""What ``/readyz`` looks at, watched in the background so that the probe answers at once."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from gateway.core.errors import HeadwayError
from gateway.policy.model import Policy

log = logging.getLogger(__name__)

_EVERY = 0.5
_LIMIT = 2.0
_PORTS = {"http": 80, "https": 443}


class Watch:
    """Knows whether the store answers and whether any target takes connections."""

    def __init__(self, policy: Policy, ping: Callable[[], Awaitable[object]]) -> None:
        self._addresses = {address_of(str(t.base_url)) for t in policy.targets.values()}
        self._ping = ping
        self._store = False
        self._away = False
        self._targets = False

    async def store(self) -> bool:
        """Whether the store answered last time."""
        return self._store

    async def targets(self) -> bool:
        """Whether at least one target took a connection last time."""
        return self._targets

    async def run(self) -> None:
        """Look twice a second until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_EVERY)

    async def look(self) -> None:
        """Look once at everything."""
        self._store, *reached = await asyncio.gather(
            self._answers(), *(connects(*address) for address in self._addresses)
        )
        self._targets = any(reached)
        if self._away is self._store:
            self._away = not self._store
            self._tell()

    def _tell(self) -> None:
        if self._away:
            log.warning(
                "the queue server does not answer: batches and jobs wait, other calls go on"
            )
        else:
            log.info("the queue server answers again")

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(_LIMIT):
                await self._ping()
        except (HeadwayError, OSError, TimeoutError):
            return False
        return True


async def connects(host: str, port: int) -> bool:
    """Whether ``host`` takes a connection on ``port`` within 2 seconds."""
    try:
        async with asyncio.timeout(_LIMIT):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def address_of(base_url: str) -> tuple[str, int]:
    """Host and port of a URL."""
    parts = urlsplit(base_url)
    return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)
