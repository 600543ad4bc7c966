"""Leases stay alive while their rows run."""

import asyncio
from pathlib import Path

from gateway.core.usage import Usage
from gateway.store.client import StoreClient
from tests.support.rig import Rig


async def test_a_row_longer_than_its_lease_runs_once(tmp_path: Path, store: StoreClient) -> None:
    """A lease of 1 s is extended for a row of 2 s (QUE-02)."""

    async def play(number: int) -> Usage:
        await asyncio.sleep(2)
        return Usage(1, 1)

    rig = Rig(tmp_path, store, play)
    await rig.add(2)
    async with rig.running():
        view = await rig.until_done(2)
    assert view.ok == 2
    assert sorted(rig.target.calls) == [0, 1]
