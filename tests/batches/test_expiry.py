"""What has run out is removed."""

from pathlib import Path

from gateway.batches.expiry import Ages, Expiry
from gateway.core.clock import SystemClock
from gateway.store.batches import BatchStore
from gateway.store.blobs import LocalBlobs
from gateway.store.client import StoreClient
from gateway.store.files import FileStore
from gateway.store.job_commands import JobCommands
from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import HOUR, BatchPlane
from tests.support.clock import ManualClock


class _Later(SystemClock):
    """The machine's clock, an hour on."""

    def now(self) -> float:
        return super().now() + 3601


async def test_expired_files_and_old_leftovers_go(tmp_path: Path, store: StoreClient) -> None:
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
    expiry = Expiry(files, blobs, BatchStore(JobCommands(store), blobs), clock)
    assert await expiry.step() == 2
    assert await expiry.step() == 0
    await unfinished.abort()


async def test_files_of_a_batch_go_and_the_batch_stays(plane: BatchPlane) -> None:
    """output_expires_after: 404 when due, then nothing on disk; the batch reads as before."""
    keep = {"anchor": "created_at", "seconds": 3600}
    batch_id = await plane.start(
        *(chat_line(str(n), "x", model="mn"[n % 2]) for n in range(4)), output_expires_after=keep
    )
    for model in "mn":
        await plane.run(2, lambda row: int(row.custom_id) > 1, model)
    await plane.finish()
    batch = await plane.get(batch_id)
    files = [batch["output_file_id"], batch["error_file_id"]]
    for file_id in files:
        file = (await plane.a.get(f"/v1/files/{file_id}")).json()
        assert file["expires_at"] == file["created_at"] + 3600
    expiry = Expiry(plane.files, plane.blobs, plane.batches, plane.clock)
    assert await expiry.step() == 0
    assert await plane.batches.with_tables() == [batch_id]
    plane.files._clock = _Later()
    for path in (
        f"/files/{files[0]}",
        f"/files/{files[1]}/content",
        f"/batches/{batch_id}/results",
    ):
        assert (await plane.a.get(f"/v1{path}")).status_code == 404
    assert await expiry.step() == 2
    names = await plane.blobs.list(f"jobs/{batch_id}/")
    assert [name.rpartition("/")[2] for name in names] == ["manifest.json", "state.json"]
    assert await plane.get(batch_id) == batch
    assert batch_id in [b["id"] for b in (await plane.a.get("/v1/batches")).json()["data"]]


async def test_leftovers_of_crashes_go(plane: BatchPlane) -> None:
    """A half-made batch and bytes without a record go after a day; parts of an ended batch before.

    What is young, or runs, stays.
    """
    running = await plane.start(*(chat_line(str(n), "x") for n in range(2)))
    await plane.run(1)
    done = await plane.start(chat_line("1", "x", model="n"))
    await plane.run(1, model="n")
    await plane.finish()
    await plane.blobs.put(f"jobs/{done}/parts/7.jsonl", b"late")
    await plane.blobs.put("jobs/batch_half/input", b"x")
    await plane.blobs.put("files/t0/file-0.data", b"x")
    assert await Expiry(plane.files, plane.blobs, plane.batches, plane.clock).step() == 0
    ages = Ages(orphan=2 * 3600, unwritten=3600)
    hour = Expiry(plane.files, plane.blobs, plane.batches, _Later(), ages)
    assert await hour.step() == 0
    assert await plane.blobs.list(f"jobs/{done}/parts/") == []
    ages = Ages(orphan=3600, unwritten=3600)
    day = Expiry(plane.files, plane.blobs, plane.batches, _Later(), ages)
    assert await day.step() == 2
    assert await plane.blobs.list("jobs/batch_half/") == []
    assert await plane.blobs.list("files/t0/") == []
    assert await plane.run(9) == 1
    await plane.finish()
    assert (await plane.get(running))["status"] == "completed"
    assert (await plane.get(done))["request_counts"]["completed"] == 1


async def test_a_batch_is_kept_as_long_as_its_files(plane: BatchPlane) -> None:
    """It goes after its days and after its files, a running one never; the bill keeps it."""
    running = await plane.start(chat_line("1", "x", model="n"))
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    await plane.finish()
    ages = Ages(orphan=1e9, batch=3600)
    expiry = Expiry(plane.files, plane.blobs, plane.batches, _Later(), ages)
    assert await expiry.step() == 0
    batch = await plane.get(batch_id)
    await plane.a.delete(f"/v1/files/{batch['output_file_id']}")
    assert await Expiry(plane.files, plane.blobs, plane.batches, plane.clock, ages).step() == 0
    assert await expiry.step() == 1
    assert await plane.batches.all_ids() == [running]
    assert [b["id"] for b in (await plane.a.get("/v1/batches")).json()["data"]] == [running]
    await plane.store.execute_command("FLUSHALL")
    await plane.reconciler.look()
    meter = (await plane.queue.meter(shard_of("m"), "a", [HOUR]))["m"]
    assert (meter["requests"], meter["prompt"]) == (1, 10)
