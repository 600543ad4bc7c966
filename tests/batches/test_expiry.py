"""What has run out is removed."""

from pathlib import Path

from gateway.batches.expiry import Expiry
from gateway.store.blobs import LocalBlobs
from gateway.store.files import FileStore
from tests.support.clock import ManualClock


async def test_expired_files_and_old_leftovers_go(tmp_path: Path) -> None:
    """A pass removes them and says how many; a second one finds nothing."""
    clock = ManualClock(4_000_000_000)
    blobs = LocalBlobs(tmp_path)
    files = FileStore(blobs, clock)
    upload = await files.start("a")
    await upload.write(b"x")
    await upload.finish("x", "batch", 3600)
    unfinished = await files.start("a")
    await unfinished.write(b"half")
    clock.advance(3600)
    expiry = Expiry(files, blobs, clock)
    assert await expiry.step() == 2
    assert await expiry.step() == 0
    await unfinished.abort()
