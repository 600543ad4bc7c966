"""Closed segments are claimed and handed to who finishes them: batches, or jobs of one request.

Both kinds wait in one list of each shard. A job is finished as soon as its row is committed by
this process (``wake``), and is not held up by large batches that are being written.
"""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.core.errors import HeadwayError
from gateway.core.loops import keep_doing
from gateway.core.work import FinishClaim
from gateway.store.job_files import is_job
from gateway.store.queue import QueueClient

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_AT_ONCE = 32
_BATCHES_AT_ONCE = 2


class Finishes(Protocol):
    """Who finishes a claimed segment; one that cannot be finished now is claimed again later."""

    def take(self, shard: str, claim: FinishClaim) -> Coroutine[Any, Any, None]:
        """Take a claimed segment as far as it goes. Doing it twice is harmless."""


@dataclass(frozen=True, slots=True)
class Finisher:
    """A process that finalises, and how long each of its claims lasts."""

    name: str
    claim_ms: int = 30_000


class Finishing:
    """The loop of one process."""

    def __init__(
        self,
        queue: QueueClient,
        batches: Finishes,
        jobs: Finishes,
        finisher: Finisher,
        wake: asyncio.Event,
    ) -> None:
        self._queue = queue
        self._batches = batches
        self._jobs = jobs
        self._finisher = finisher
        self._wake = wake
        self._taking: dict[str, asyncio.Task[None]] = {}
        self._large = asyncio.Semaphore(_BATCHES_AT_ONCE)

    async def run(self) -> None:
        """Finish until cancelled; a fault of one segment or of the store is no end."""
        try:
            await keep_doing(
                self._start, "finalising", every=_POLL_SECONDS, busy=True, wake=self._wake
            )
        finally:
            for task in self._taking.values():
                task.cancel()

    async def step(self) -> bool:
        """Finish one closed segment of each shard; False when there was none."""
        found = False
        for shard in await self._queue.shards():
            claim = await self._claim(shard)
            if claim is not None:
                found = True
                await self._take(shard, claim)
        return found

    async def _start(self) -> bool:
        """Begin to finish one closed segment of each shard; False when there was none."""
        found = False
        for shard in await self._queue.shards():
            while len(self._taking) >= _AT_ONCE:
                await asyncio.wait(self._taking.values(), return_when=asyncio.FIRST_COMPLETED)
            claim = await self._claim(shard)
            if claim is None:
                continue
            found = True
            if claim.segment not in self._taking:
                task = asyncio.create_task(self._guarded(shard, claim))
                self._taking[claim.segment] = task
        return found

    async def _claim(self, shard: str) -> FinishClaim | None:
        return await self._queue.finish_claim(shard, self._finisher.name, self._finisher.claim_ms)

    async def _guarded(self, shard: str, claim: FinishClaim) -> None:
        try:
            await self._take(shard, claim)
        except HeadwayError as error:
            log.warning("%s is finalised later: %s", claim.segment, error.message)
        except Exception:
            log.exception("%s is finalised later", claim.segment)
        finally:
            del self._taking[claim.segment]

    async def _take(self, shard: str, claim: FinishClaim) -> None:
        if is_job(claim.job):
            await self._jobs.take(shard, claim)
            return
        async with self._large:
            await self._batches.take(shard, claim)
