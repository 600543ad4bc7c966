"""Rows through a provider's own Batch API."""

import asyncio
from pathlib import Path

from gateway.core.usage import Usage
from gateway.store.blobs import LocalBlobs
from gateway.store.carries import Carries
from gateway.store.client import StoreClient
from tests.support.batch_provider import BatchProvider
from tests.support.carriers import carrying, fine
from tests.support.rig import SHARD, Rig


async def test_rows_that_can_wait_are_handed_in(rig: Rig, provider: BatchProvider) -> None:
    """All in one batch, each answered as its own row; then nothing of ours is left there."""
    carrying(rig, provider)
    await rig.add(60)
    async with rig.running():
        view = await rig.until_done(60)
        await asyncio.sleep(0.3)
    assert (view.ok, view.bad) == (60, 0)
    assert view.usage == Usage(180, 120)
    lines = await rig.lines()
    assert {key: line["response"]["body"]["n"] for key, line in lines.items()} == {
        f"c{n}": n for n in range(60)
    }
    assert len(provider.batches) == 1
    [batch] = provider.batches.values()
    assert batch["completion_window"] == "24h"
    assert {row["body"]["model"] for row in provider.requests()} == {"their-m"}
    assert not rig.target.calls
    assert set(provider.deleted) == {batch["input_file_id"], batch["output_file_id"]}
    assert await Carries(LocalBlobs(rig.root)).ids() == []


async def test_an_endpoint_that_the_provider_does_not_have(
    rig: Rig, provider: BatchProvider
) -> None:
    """Rows that have to be translated run at the targets of the pool."""
    carrying(rig, provider)
    await rig.add(5, endpoint="/v1/responses")
    async with rig.running():
        view = await rig.until_done(5)
    assert (view.ok, len(rig.target.calls)) == (5, 5)
    assert not provider.batches


async def test_a_successor_goes_on(
    tmp_path: Path, store: StoreClient, rig: Rig, provider: BatchProvider
) -> None:
    """A dispatcher ends while its batch runs there: the next one joins, nothing is sent twice."""
    provider.hold = True
    carrying(rig, provider)
    await rig.add(50)
    async with rig.running():
        async with asyncio.timeout(5):
            while not provider.batches:  # noqa: ASYNC110 - another thread
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
    provider.hold = False
    second = Rig(tmp_path, store, fine)
    carrying(second, provider)
    async with second.running():
        view = await second.until_done(50)
    assert view.ok == 50
    assert len(provider.batches) == 1
    assert not second.target.calls


async def test_a_cancelled_segment_is_cancelled_there(rig: Rig, provider: BatchProvider) -> None:
    """When no row is waited for any more, the provider is told to stop."""
    provider.hold = True
    carrying(rig, provider)
    await rig.add(10)
    async with rig.running():
        async with asyncio.timeout(5):
            while not provider.batches:  # noqa: ASYNC110 - another thread
                await asyncio.sleep(0.01)
        view = await rig.view()
        await rig.queue.cancel(SHARD, view.segment, 3000)
        async with asyncio.timeout(5):
            while (await rig.view()).leased:  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.05)
        async with asyncio.timeout(5):
            while provider.batches["batch_0"]["status"] != "cancelled":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
