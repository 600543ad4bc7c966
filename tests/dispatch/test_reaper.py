"""What a silent dispatcher held comes back."""

import asyncio
from pathlib import Path

from gateway.core.usage import Usage
from gateway.store.client import StoreClient
from tests.support.rig import SHARD, Rig


async def _answer(number: int) -> Usage:
    return Usage(1, 1)


async def test_rows_of_a_dead_dispatcher_are_run(tmp_path: Path, store: StoreClient) -> None:
    """Their lease runs out and another takes them."""
    rig = Rig(tmp_path, store, _answer)
    await rig.add(6)
    assert await rig.queue.lease(SHARD, "dead", 4, 10**6, 50) is not None
    async with rig.running():
        view = await rig.until_done(6)
    assert view.ok == 6


async def test_a_row_whose_deliveries_are_used_up_gets_its_line(
    tmp_path: Path, store: StoreClient
) -> None:
    """Three dispatchers died with this row alone: max_deliveries, written without a lease."""
    rig = Rig(tmp_path, store, _answer)
    await rig.add(1)
    for _ in range(3):
        assert await rig.queue.lease(SHARD, "dead", 4, 10**6, 1) is not None
        await asyncio.sleep(0.01)
        await rig.queue.reap(SHARD, 8, rig.retry)
    async with rig.running():
        view = await rig.until_done(1)
    assert view.bad == 1
    assert not rig.target.calls
    assert (await rig.lines())["c0"]["error"]["code"] == "max_deliveries"
