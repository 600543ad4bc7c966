"""What removed work had delivered is kept in lines."""

from pathlib import Path

from gateway.core.usage import Usage
from gateway.core.work import SegmentStatus
from gateway.store.billed import Billed
from gateway.store.blobs import LocalBlobs
from gateway.store.rebuild import EndedSegment


def _ended(name: str) -> EndedSegment:
    usage, hours = Usage(10, 2), {"2026113005": {"requests": 1, "prompt": 10, "completion": 2}}
    done = SegmentStatus.COMPLETED
    return EndedSegment(f"{name}.0", name, "a", "m", 1, 1, 0, done, usage, hours)


async def test_lines_of_another_epoch_are_lost(tmp_path: Path) -> None:
    """Each segment once, as it was noted; not those that the epoch has."""
    billed = Billed(LocalBlobs(tmp_path))
    assert await billed.names() == []
    await billed.note("jobs-1", "first", [_ended("x"), _ended("y")])
    await billed.note("jobs-1", "second", [_ended("x"), _ended("z")])
    await billed.note("jobs-2", None, [])
    assert await billed.names("jobs-") == ["jobs-1"]
    assert await billed.names("batches") == []
    assert await billed.lost("jobs-1", "first") == [_ended("z")]
    assert await billed.lost("jobs-1", "second") == [_ended("y")]
    assert len(await billed.lost("jobs-1", None)) == 3


async def test_a_line_that_was_cut_off(tmp_path: Path) -> None:
    """It is no line; the next one is whole."""
    billed = Billed(LocalBlobs(tmp_path))
    await billed.note("batches", None, [_ended("x")])
    path = tmp_path / "billed" / "batches.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    await billed.note("batches", None, [_ended("y")])
    assert await billed.lost("batches", None) == [_ended("y")]
