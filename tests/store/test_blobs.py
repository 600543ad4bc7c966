"""Blobs are whole or not there, durable when named, and never outside their directory."""

import hashlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.core.clock import SystemClock
from gateway.core.errors import NotFound, StoreFull
from gateway.store.blobs import LocalBlobs


@pytest.fixture
def blobs(tmp_path: Path) -> LocalBlobs:
    return LocalBlobs(tmp_path / "blobs")


@pytest.mark.parametrize("sync", [False, True])
async def test_what_waits_for_the_disk(
    blobs: LocalBlobs, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    """Without ``sync`` nobody waits; what was written is whole and readable either way."""
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    await blobs.put("a/b", b"one", sync=False)  # makes the folder
    waits.clear()
    await blobs.put("a/b", b"two", sync=sync)
    assert bool(waits) == sync
    assert await blobs.read("a/b") == b"two"


async def test_put_and_read(blobs: LocalBlobs) -> None:
    """A small blob comes back as it was; a second put replaces it whole."""
    await blobs.put("jobs/a/manifest.json", b"one")
    await blobs.put("jobs/a/manifest.json", b"two")
    assert await blobs.read("jobs/a/manifest.json") == b"two"
    assert await blobs.size("jobs/a/manifest.json") == 3
    assert await blobs.size("jobs/a/other") is None


async def test_a_written_blob_appears_at_finish(blobs: LocalBlobs) -> None:
    """Nobody sees a blob before it is finished; its digest is that of the bytes."""
    writer = await blobs.create("files/t/x.data")
    await writer.write(b"hello ")
    await writer.write(b"world")
    assert await blobs.size("files/t/x.data") is None
    assert await writer.finish() == hashlib.sha256(b"hello world").hexdigest()
    await writer.abort()
    assert await blobs.read("files/t/x.data") == b"hello world"
    assert writer.size == 11


async def test_an_aborted_blob_leaves_nothing(blobs: LocalBlobs) -> None:
    """Abort removes the temporary file."""
    writer = await blobs.create("files/t/x.data")
    await writer.write(b"half")
    await writer.abort()
    assert not [path for path in blobs.root.rglob("*") if path.is_file()]


async def test_an_empty_blob_can_be_finished(blobs: LocalBlobs) -> None:
    """An empty upload is a file too."""
    writer = await blobs.create("files/t/x.data")
    await writer.finish()
    assert await blobs.read("files/t/x.data") == b""


async def test_ranges(blobs: LocalBlobs) -> None:
    """Ranges give exactly their bytes; one past the end is refused."""
    await blobs.put("a", b"0123456789")
    assert await blobs.read_ranges("a", [(0, 2), (8, 2), (3, 0)]) == [b"01", b"89", b""]
    with pytest.raises(NotFound):
        await blobs.read_ranges("a", [(8, 3)])


async def test_a_stream_survives_the_delete(blobs: LocalBlobs) -> None:
    """A download that has begun ends well although the blob is deleted."""
    await blobs.put("a", b"x" * 10)
    stream = await blobs.stream("a", chunk=4)
    assert await blobs.delete("a")
    assert [piece async for piece in stream] == [b"xxxx", b"xxxx", b"xx"]
    assert not await blobs.delete("a")
    with pytest.raises(NotFound):
        await blobs.stream("a")


async def test_a_copy_is_a_second_name(blobs: LocalBlobs) -> None:
    """The copy stays when the first name goes, and copying again is harmless."""
    await blobs.put("files/a", b"bytes")
    await blobs.copy("files/a", "jobs/b/input")
    await blobs.copy("files/a", "jobs/b/input")
    await blobs.delete("files/a")
    assert await blobs.read("jobs/b/input") == b"bytes"
    assert not list((blobs.root / "tmp").iterdir())
    with pytest.raises(NotFound):
        await blobs.copy("files/a", "jobs/c/input")


async def test_list_and_delete_a_folder(blobs: LocalBlobs) -> None:
    """A list shows what is right below; a folder is deleted with all it holds."""
    for name in ("jobs/b/x", "jobs/a/parts/0", "jobs/a/parts/1", "jobs/c"):
        await blobs.put(name, b"")
    assert await blobs.list("jobs/") == ["jobs/a/", "jobs/b/", "jobs/c"]
    assert await blobs.delete("jobs/a/")
    assert await blobs.list("jobs/a/") == []


@pytest.mark.parametrize(
    "name", ["", "../x", "a/../../x", "/etc/passwd", "a//b", "a/.", ".hidden", "a\0b", "a\\b", "ä"]
)
async def test_names_the_server_never_makes_are_not_there(blobs: LocalBlobs, name: str) -> None:
    """No name leads out of the directory."""
    for attempt in (blobs.read(name), blobs.size(name), blobs.put(name, b""), blobs.delete(name)):
        with pytest.raises(NotFound):
            await attempt


async def test_sweep_removes_only_old_leftovers(blobs: LocalBlobs) -> None:
    """What a killed process left unfinished goes after an hour; running uploads stay."""
    young, old = await blobs.create("young"), await blobs.create("old")
    await old.write(b"x")
    os.utime(next((blobs.root / "tmp").iterdir()), (1, 1))
    await young.write(b"x")
    assert await blobs.sweep(SystemClock()) == 1
    await young.finish()
    assert await blobs.read("young") == b"x"
    await old.abort()


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file may grow over 64 KB, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path, small_disk: None) -> None:
    """Whole or not at all: there is neither a blob nor a rest of it, and small ones still go."""
    blobs = LocalBlobs(tmp_path)
    writer = await blobs.create("files/a/data")
    with pytest.raises(StoreFull, match="disk is full"):
        await writer.write(bytes(200_000))
    await writer.abort()
    with pytest.raises(StoreFull):
        await blobs.put("files/b/data", bytes(200_000))
    assert _files_in(tmp_path) == []
    await blobs.put("files/c/data", b"small")


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
