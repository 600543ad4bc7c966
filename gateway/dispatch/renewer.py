"""Keeps leases alive, on its own beat, and hears of what must stop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from gateway.core.errors import Unavailable
from gateway.dispatch.held import HeldRow, Holdings
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_LONGEST_BEAT = 1.0


class Renewer:
    """Extends every held lease each third of its ttl, at least once a second.

    Once a second even for long leases, because the answer names the cancelled segments. ``abort``
    is called with the rows that must not go on.
    """

    def __init__(
        self,
        queue: QueueClient,
        holdings: Holdings,
        worker: str,
        ttl_ms: int,
        abort: Callable[[Sequence[HeldRow]], Awaitable[None]],
    ) -> None:
        self._queue = queue
        self._holdings = holdings
        self._worker = worker
        self._ttl_ms = ttl_ms
        self._abort = abort

    async def run(self) -> None:
        """Renew until cancelled. An unreachable queue is asked again at the next beat."""
        beat = min(self._ttl_ms / 3000, _LONGEST_BEAT)
        while True:
            await asyncio.sleep(beat)
            try:
                await self.renew()
            except Unavailable as error:
                log.warning("leases could not be extended: %s", error.message)
            except Exception:
                log.exception("leases could not be extended")

    async def renew(self) -> None:
        """Extend all leases once."""
        for shard, leases in self._holdings.by_shard().items():
            ids = [lease.id for lease in leases]
            asked = self._holdings.now()
            answer = await self._queue.extend(shard, self._worker, self._ttl_ms, ids)
            if rows := self._holdings.extended(answer, asked):
                await self._abort(rows)
