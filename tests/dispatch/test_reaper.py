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


async def test_a_dead_row_whose_line_cannot_be_used(tmp_path: Path, store: StoreClient) -> None:
    """It ends as any dead row, with what can be known of its id."""
    rig = Rig(tmp_path, store, _answer)
    deep = '{"custom_id":"deep","body":{"n":' + "[" * 300 + "]" * 300 + "}}"
    await rig.add(1, odd={0: deep})
    await _die(rig)
    async with rig.running():
        view = await rig.until_done(1)
    assert view.bad == 1
    assert (await rig.lines())["deep"]["error"]["code"] == "max_deliveries"


async def test_dead_rows_without_files_wait(tmp_path: Path, store: StoreClient) -> None:
    """The reaper goes on; the rows end once their file can be read."""
    rig = Rig(tmp_path, store, _answer)
    await rig.add(1)
    await _die(rig)
    index = tmp_path / "jobs" / "batch_1" / "index-0"
    hidden = index.rename(index.with_name("away"))
    async with rig.running():
        await asyncio.sleep(0.3)
        hidden.rename(index)
        view = await rig.until_done(1)
    assert view.bad == 1


async def _die(rig: Rig) -> None:
    """Use up the deliveries of the one row."""
    for _ in range(3):
        assert await rig.queue.lease(SHARD, "dead", 4, 10**6, 1) is not None
        await asyncio.sleep(0.01)
        await rig.queue.reap(SHARD, 8, rig.retry)
