"""The sweep goes on."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.errors import NotFound
from gateway.jobs.response_sweep import ResponseSweeper
from gateway.store.blobs import LocalBlobs
from gateway.store.responses import ResponseStore, StoredResponse, new_response_id
from tests.support.batch_plane import eventually
from tests.support.clock import ManualClock


async def _gone(blobs: LocalBlobs) -> bool:
    return not await blobs.list("response/")


async def test_it_removes_what_comes_of_age(tmp_path: Path) -> None:
    """Also what expires after the first pass."""
    clock, blobs = ManualClock(1_700_000_000), LocalBlobs(tmp_path)
    store = ResponseStore(blobs, clock, 10)
    await store.put(StoredResponse("a", {"id": new_response_id(clock.now())}, []))
    running = asyncio.create_task(ResponseSweeper(store, 0.01).run())
    await asyncio.sleep(0.05)
    assert await blobs.list("response/")
    clock.advance(3000)
    await eventually(lambda: _gone(blobs))
    running.cancel()
    with pytest.raises(NotFound):
        await store.get("a", "resp_" + "0" * 24)
