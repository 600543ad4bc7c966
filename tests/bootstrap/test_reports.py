"""A process that tells what it knows."""

import asyncio

from gateway.bootstrap.reports import Reporting
from gateway.core.clock import SystemClock
from gateway.store.client import StoreClient
from gateway.store.reports import TargetReports


async def test_it_tells_at_once(store: StoreClient) -> None:
    """What ``make`` gives, under its name and role."""
    reports = TargetReports(store, SystemClock())
    task = asyncio.create_task(Reporting(reports, "g", "gateway", lambda: {"up": {}}).run())
    async with asyncio.timeout(5):
        while not (found := await reports.fresh()):  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    assert found == [("g", "gateway", {"up": {}})]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
