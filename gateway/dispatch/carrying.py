"""A pool with a provider's Batch API beside its targets."""

import asyncio
from collections.abc import Sequence

from gateway.dispatch.carrier import Carrier
from gateway.dispatch.held import HeldRow
from gateway.dispatch.pool import Pool


class CarryingPool:
    """Gives the carrier every row that can wait; the others run at the targets of the pool.

    Without such targets (``pool`` is None) the carrier takes all.
    """

    def __init__(self, carrier: Carrier, pool: Pool | None) -> None:
        self._carrier = carrier
        self._pool = pool
        self._short = False
        self.changed = pool.changed if pool else asyncio.Event()

    def wants(self) -> int:
        """Rows worth leasing now.

        While the pool is full and the queue's next rows are such as only it can run, none.
        """
        direct = self._pool.wants() if self._pool else 0
        if self._short and not direct:
            return 0
        return direct + self._carrier.room()

    async def take(self, rows: Sequence[HeldRow]) -> None:
        """Share out the rows of a lease."""
        await self._carrier.refresh()
        if self._pool is None:
            self._carrier.stage(rows, None)
            return
        carried = [row for row in rows if self._carrier.knows(row) or self._carrier.takes(row)]
        chosen = set(carried)
        direct = [row for row in rows if row not in chosen]
        self._short = bool(direct)
        self._carrier.stage(carried, self._pool.stage)
        self._pool.stage(direct)

    def drop(self, row: HeldRow) -> bool:
        """Stop a row. False: its result is on the way already."""
        if self._pool is None or self._carrier.has(row):
            return self._carrier.drop(row)
        return self._pool.drop(row)

    def close(self) -> None:
        """Start nothing any more; what the provider has stays there, on record."""
        self._carrier.close()
        if self._pool:
            self._pool.close()

    async def idle(self) -> None:
        """Wait until no row runs here."""
        await self._carrier.idle()
        if self._pool:
            await self._pool.idle()
