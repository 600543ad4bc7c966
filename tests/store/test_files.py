"""Files belong to tenants, are listed in order of creation, and expire."""

from pathlib import Path

import pytest

from gateway.core.errors import NotFound
from gateway.schemas.lists import PageRequest
from gateway.store.blobs import LocalBlobs
from gateway.store.files import FileRecord, FileStore
from tests.support.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000)


@pytest.fixture
def files(tmp_path: Path, clock: ManualClock) -> FileStore:
    return FileStore(LocalBlobs(tmp_path), clock)


async def _upload(files: FileStore, tenant: str = "a", keep: int | None = None) -> FileRecord:
    upload = await files.start(tenant)
    await upload.write(b"line\n")
    return await upload.finish("x.jsonl", "batch", keep)


def _stored(folder: Path, pattern: str = "*") -> list[Path]:
    return [path for path in folder.rglob(pattern) if path.is_file()]


async def test_bytes_and_record_come_back(files: FileStore) -> None:
    """What was uploaded is read as it was."""
    record = await _upload(files)
    assert await files.get("a", record.id) == record
    pieces = [piece async for piece in await files.content("a", record.id)]
    assert b"".join(pieces) == b"line\n"
    assert record.sha256 is not None
    assert record.bytes == 5


async def test_another_tenants_file_is_not_there(files: FileStore) -> None:
    """SEC-13: get, content, delete and list know nothing of foreign files."""
    record = await _upload(files)
    for attempt in (
        files.get("b", record.id),
        files.content("b", record.id),
        files.delete("b", record.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await files.page("b", PageRequest(10)) == ([], False)
    assert await files.get("a", record.id) == record


async def test_pages_follow_creation_in_both_orders(files: FileStore, clock: ManualClock) -> None:
    """Pages go on after an id, also when that file was deleted meanwhile."""
    made = []
    for _ in range(5):
        made.append((await _upload(files)).id)
        clock.advance(1)
    first, more = await files.page("a", PageRequest(2))
    assert ([f.id for f in first], more) == (made[:2:-1], True)
    await files.delete("a", first[-1].id)
    rest, more = await files.page("a", PageRequest(9, after=first[-1].id))
    assert ([f.id for f in rest], more) == (made[2::-1], False)
    rising, more = await files.page("a", PageRequest(2, descending=False))
    assert ([f.id for f in rising], more) == (made[:2], True)
    assert await files.page("a", PageRequest(9), "vision") == ([], False)


async def test_expired_files_are_gone_and_swept(
    files: FileStore, clock: ManualClock, tmp_path: Path
) -> None:
    """At its time a file is not found any more, and the sweep removes its bytes."""
    record, kept = await _upload(files, keep=3600), await _upload(files)
    assert record.expires_at == clock.now() + 3600
    assert await files.sweep() == 0
    clock.advance(3600)
    with pytest.raises(NotFound):
        await files.get("a", record.id)
    assert [f.id for f in (await files.page("a", PageRequest(9)))[0]] == [kept.id]
    assert await files.sweep() == 1
    assert len(_stored(tmp_path, "*.data")) == 1


async def test_an_aborted_upload_is_not_seen(files: FileStore, tmp_path: Path) -> None:
    """Nothing of a broken upload stays."""
    upload = await files.start("a")
    await upload.write(b"half")
    await upload.abort()
    assert await files.page("a", PageRequest(9)) == ([], False)
    assert not _stored(tmp_path)


async def test_adopting_twice_gives_one_file(files: FileStore, tmp_path: Path) -> None:
    """An output file published a second time is the same file."""
    await LocalBlobs(tmp_path).put("jobs/j/output-0.jsonl", b"{}\n")
    record = FileRecord(f"file-{5:024x}", "a", 3, 1, "o.jsonl", "batch_output", None, None)
    for _ in range(2):
        await files.adopt(record, "jobs/j/output-0.jsonl")
    assert (await files.page("a", PageRequest(9)))[0] == [record]


async def test_ids_that_are_no_ids_are_not_found(files: FileStore) -> None:
    """Nothing but a server-made id is looked up."""
    for file_id in ("../x", "file-1", "file-" + "g" * 24, ""):
        with pytest.raises(NotFound):
            await files.get("a", file_id)
