"""Records of what a provider's Batch API has."""

from pathlib import Path

from gateway.store.blobs import LocalBlobs
from gateway.store.carries import Carries, Carry


async def test_a_record_outlives_its_writer(tmp_path: Path) -> None:
    """Written, read by another, brought up to date, removed."""
    carry = Carry("carry_1", "p", 12.5, ("b.0:0", "b.0:1"))
    await Carries(LocalBlobs(tmp_path)).save(carry)
    other = Carries(LocalBlobs(tmp_path))
    assert await other.ids() == ["carry_1"]
    assert await other.load("carry_1") == carry
    await other.save(carry.at(file="file-1").at(batch="batch_1"))
    assert await other.load("carry_1") == Carry(
        "carry_1", "p", 12.5, ("b.0:0", "b.0:1"), "file-1", "batch_1"
    )
    await other.remove("carry_1")
    assert await other.load("carry_1") is None
    assert await other.ids() == []
