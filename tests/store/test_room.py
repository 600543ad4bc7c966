"""New work is refused before the disk is full."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import StoreFull
from gateway.store.blobs import LocalBlobs
from gateway.store.files import FileStore
from gateway.store.room import PLENTY, DiskRoom
from tests.support.clock import ManualClock


async def test_what_is_kept_is_limited(tmp_path: Path) -> None:
    """Counted from the disk now and then, with what was taken since; links count once."""
    clock = ManualClock(1000)
    blobs = LocalBlobs(tmp_path)
    await blobs.put("a/x", b"x" * 100_000)
    await blobs.copy("a/x", "a/y")
    room = DiskRoom(tmp_path, clock, limit=200_000)
    await room.take(50_000)
    await room.take(40_000)
    with pytest.raises(StoreFull) as refused:
        await room.take(40_000)
    assert refused.value.retry_after
    await room.take(1000)
    await room.count()
    await room.take(40_000)
    await blobs.put("a/z", b"x" * 100_000)
    await room.count()
    with pytest.raises(StoreFull):
        await room.take(0)
    await blobs.delete("a/")
    await room.count()
    await room.take(0)


async def test_it_is_counted_beside_the_requests(tmp_path: Path) -> None:
    """Nobody who asks counts after the first; what others write is seen soon."""
    blobs, clock = LocalBlobs(tmp_path), ManualClock(1000)
    room = DiskRoom(tmp_path, clock, limit=200_000)
    await asyncio.gather(*(room.take(1000) for _ in range(20)))
    await blobs.put("a/x", b"x" * 300_000)
    await room.take(1000)
    counting = asyncio.create_task(room.run())
    with pytest.raises(StoreFull):
        await until_refused(room)
    counting.cancel()
    await blobs.delete("a/")
    with pytest.raises(StoreFull):
        await room.take(1000)
    await room.count()
    await room.take(1000)
    await DiskRoom(tmp_path, clock).run()  # no limit, nothing to count


async def until_refused(room: DiskRoom) -> None:
    """Ask for nothing until that is too much."""
    async with asyncio.timeout(5):
        while True:
            await room.take(0)
            await asyncio.sleep(0.01)


async def test_what_is_taken_while_it_is_counted_is_added(tmp_path: Path) -> None:
    """Never more than the limit, however the counts fall."""
    room = DiskRoom(tmp_path, SystemClock(), limit=100_000)
    await room.take(0)
    counts = asyncio.create_task(room.count())
    await asyncio.sleep(0)
    for _ in range(10):
        await room.take(10_000)
    with pytest.raises(StoreFull):
        await room.take(1)
    await counts
    with pytest.raises(StoreFull):
        await room.take(1)


async def test_some_of_the_disk_stays_free(tmp_path: Path) -> None:
    """Also when the directory is not there yet."""
    clock = SystemClock()
    await DiskRoom(tmp_path / "new" / "data", clock, free=1).take(1)
    await DiskRoom(tmp_path, clock).take(2**70)
    await PLENTY.take(2**70)
    with pytest.raises(StoreFull, match="nearly full"):
        await DiskRoom(tmp_path, clock, free=2**60).take(0)
    with pytest.raises(StoreFull):
        await DiskRoom(tmp_path, clock, free=1).take(2**60)


async def test_an_upload_stops_where_the_room_ends(tmp_path: Path) -> None:
    """Nothing of it is left, and nothing new begins."""
    blobs, clock = LocalBlobs(tmp_path), SystemClock()
    files = FileStore(blobs, clock, DiskRoom(tmp_path, clock, limit=100_000))
    upload = await files.start("a")
    await upload.write(b"x" * 90_000)
    with pytest.raises(StoreFull):
        await upload.write(b"x" * 20_000)
    await upload.abort()
    assert await blobs.list("tmp/") == []
    full = FileStore(blobs, clock, DiskRoom(tmp_path, clock, free=2**60))
    with pytest.raises(StoreFull):
        await full.start("a")
