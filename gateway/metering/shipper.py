"""Ships records from the journals of this data directory into the store, each counted once."""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from gateway.core.breaks import Breaks
from gateway.core.clock import Clock
from gateway.core.errors import Unavailable
from gateway.metering.journal import Journal
from gateway.metering.recovery import (
    complete,
    journal_files,
    keep,
    lines_from,
    sweep,
    take_back,
    taken,
)
from gateway.metering.sums import Sums
from gateway.store.usage import Deltas

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 1.0
_LONGEST_PAUSE = 15.0
_STRETCH_BYTES = 256 * 2**10
_SLICE_BYTES = 16 * 2**10
_FEW = 32
_SWEEP_SECONDS = 600.0
_Lines = list[tuple[int, dict[str, Any]]]


class Totals(Protocol):
    """The store as the shipper needs it; see ``gateway.store.usage.UsageTotals``."""

    async def epoch(self) -> str:
        """Names the totals; another name says that the ones before were lost."""

    async def ship(self, tenant: str, file: str, since: int, until: int, deltas: Deltas) -> int:
        """Count a stretch once; returns the mark found."""

    async def forget(self, tenant: str, file: str) -> None:
        """Drop a mark."""


@dataclass(slots=True)
class _Progress:
    """How far one file is counted: read to ``offset``; per tenant to its mark."""

    offset: int
    marks: defaultdict[str, int]


class Shipper:
    """Ships this process's journal as it grows, and every file that a process left behind.

    While Redis is away or full the journals wait on the disk. Shipped files stay readable for
    ``record_days``.
    """

    def __init__(
        self, folder: Path, journal: Journal, totals: Totals, clock: Clock, *, record_days: float
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._totals = totals
        self._clock = clock
        self._record_days = record_days
        self._progress: dict[str, _Progress] = {}
        self._swept_at = -_SWEEP_SECONDS
        self._epoch = ""

    async def run(self, interval: float = INTERVAL_SECONDS) -> None:
        """Ship until cancelled."""
        pause = interval
        said: type[Unavailable] | None = None
        while True:
            try:
                await self.ship()
                pause, said = interval, None
            except Unavailable as error:
                if said is not type(error):
                    log.warning("usage waits in the journal: %s", error)
                said = type(error)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception:
                log.exception("usage could not be shipped")
                pause = min(2 * pause, _LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def ship(self) -> None:
        """Ship all there is. Raises Unavailable; what was not shipped is shipped later."""
        await self._enter(await self._totals.epoch())
        for path in journal_files(self._folder):
            if path != self._journal.path:
                await self._ship_left(path)
        await self._ship_file(self._journal.path, self._journal.written)
        now = self._clock.monotonic()
        if now - self._swept_at >= _SWEEP_SECONDS:
            self._swept_at = now
            sweep(self._folder, self._clock.now(), self._record_days)

    async def close(self, timeout_seconds: float = 5.0) -> None:
        """End the journal and ship the rest, if that goes quickly; else the next start does."""
        self._journal.close()
        with contextlib.suppress(TimeoutError, Unavailable):
            async with asyncio.timeout(timeout_seconds):
                await self._enter(await self._totals.epoch())
                await self._ship_left(self._journal.path)

    async def _enter(self, epoch: str) -> None:
        """Totals that were lost are made again from all records that are kept."""
        if epoch == self._epoch:
            return
        self._progress.clear()
        again = await asyncio.to_thread(take_back, self._folder, epoch)
        if again:
            log.warning("the store lost its totals: %d journals are shipped again", again)
        self._epoch = epoch

    async def _ship_left(self, path: Path) -> None:
        with taken(path) as ours:
            if not ours:
                return
            # A dead process may have left much to read.
            size = await asyncio.to_thread(complete, path)
            progress = await self._ship_file(path, size)
            while not await self._counted(path.name, progress):
                await self._ship_file(path, size)
            if await self._totals.epoch() != self._epoch:
                return  # lost meanwhile: the next round begins again
            keep(path, self._epoch)
        self._progress.pop(path.name, None)
        for tenant in progress.marks:
            await self._totals.forget(tenant, path.name)

    async def _ship_file(self, path: Path, until: int) -> _Progress:
        """Ship whole lines before ``until``."""
        progress = self._progress.setdefault(path.name, _Progress(0, defaultdict(int)))
        while progress.offset < until:
            lines = await _lines(
                path, progress.offset, min(until, progress.offset + _STRETCH_BYTES)
            )
            if not lines:
                break
            progress.offset = await self._ship_lines(path.name, progress, lines)
        return progress

    async def _ship_lines(self, file: str, progress: _Progress, lines: _Lines) -> int:
        """Ship one stretch; returns where to go on, which is further back if the store forgot."""
        going_on = until = lines[-1][0]
        by_tenant: defaultdict[str, _Lines] = defaultdict(list)
        for end, line in lines:
            if "close" in line:
                by_tenant[line["tenant"]].append((end, line))
        for tenant, own in by_tenant.items():
            since = progress.marks[tenant]
            while since < until:
                fresh = [line for end, line in own if end > since]
                found = await self._totals.ship(tenant, file, since, until, await _sums(fresh))
                if found < since:
                    going_on = min(going_on, found)
                    since = found
                    break
                since = until if found == since else found
            progress.marks[tenant] = since
        return going_on

    async def _counted(self, file: str, progress: _Progress) -> bool:
        """Whether the store still has every mark: a store that crashed may have lost a second."""
        for tenant, mark in list(progress.marks.items()):
            found = await self._totals.ship(tenant, file, mark, mark, {})
            if found < mark:
                progress.marks[tenant] = found
                progress.offset = min(progress.offset, found)
                return False
        return True


async def _lines(path: Path, since: int, until: int) -> _Lines:
    """Whole lines of a stretch, read so that calls go on meanwhile."""
    breaks, lines = Breaks(), list[tuple[int, dict[str, Any]]]()
    while since < until:
        some = lines_from(path, since, min(_SLICE_BYTES, until - since))
        if not some:
            break
        lines += some
        since = some[-1][0]
        await breaks.take()
    return lines


async def _sums(lines: Iterable[dict[str, Any]]) -> Deltas:
    """Hour, field, amount of these records, added up so that calls go on meanwhile."""
    breaks, added = Breaks(), Sums()
    rest = iter(lines)
    while some := list(islice(rest, _FEW)):
        for line in some:
            added.add(line)
        await breaks.take()
    return added.hours()
