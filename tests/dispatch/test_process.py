"""A loop that fails ends the process, so that its supervisor starts a fresh one."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.usage import Usage
from gateway.dispatch.process import run_until
from gateway.store.client import StoreClient
from tests.support.rig import Rig


class _Broken:
    async def run(self) -> None:
        raise RuntimeError("broken")


async def test_a_failing_loop_ends_everything(tmp_path: Path, store: StoreClient) -> None:
    """The error is the group's; nothing goes on half dead."""

    async def play(number: int) -> Usage:
        return Usage()

    rig = Rig(tmp_path, store, play)
    with pytest.raises(ExceptionGroup) as caught:
        await run_until(asyncio.Event(), rig.dispatcher, [_Broken()], [])
    assert caught.group_contains(RuntimeError, match="broken")
    rig.journal.close()
