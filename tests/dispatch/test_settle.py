"""Results outlive an outage of the disk."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.core.usage import Usage
from gateway.core.work import PartRef
from gateway.store.client import StoreClient
from gateway.store.part_notes import PartNote
from tests.support.rig import Rig


async def test_results_wait_for_the_disk(
    tmp_path: Path, store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk loses nothing and runs nothing twice."""

    async def play(number: int) -> Usage:
        return Usage(1, 1)

    rig = Rig(tmp_path, store, play)
    write, full = rig.parts.append, asyncio.Event()

    async def refusing(job: str, lines: Sequence[tuple[PartNote, bytes]]) -> list[PartRef]:
        if not full.is_set():
            raise OSError(28, "no space left")
        return await write(job, lines)

    monkeypatch.setattr(rig.parts, "append", refusing)
    await rig.add(8)
    async with rig.running():
        await asyncio.sleep(0.3)
        assert (await rig.view()).ok == 0
        full.set()
        await rig.until_done(8)
    assert sorted(rig.target.calls) == list(range(8))


async def test_results_that_cannot_be_settled_are_let_go(
    tmp_path: Path, store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault nobody foresaw ends no process: the lease runs out and the rows are run again."""

    async def play(number: int) -> Usage:
        return Usage(1, 1)

    rig = Rig(tmp_path, store, play)
    write, broken = rig.parts.append, [True]

    async def faulty(job: str, lines: Sequence[tuple[PartNote, bytes]]) -> list[PartRef]:
        if broken:
            broken.clear()
            raise TypeError("broken")
        return await write(job, lines)

    monkeypatch.setattr(rig.parts, "append", faulty)
    await rig.add(2)
    async with rig.running():
        view = await rig.until_done(2)
    assert view.ok == 2
