"""Rows make way for people: taken back before their first token, and run later."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from gateway.core.clock import SystemClock
from gateway.core.usage import Usage
from gateway.pacing.shared import Caps, SharedEngine, Waiting
from gateway.store.client import StoreClient
from tests.support.rig import Rig


async def test_rows_without_a_token_make_way(tmp_path: Path, store: StoreClient) -> None:
    """The newest are taken back, the first stays; every row ends once and keeps its tries."""
    waiting = Waiting(0, 0)
    gone = asyncio.Event()
    caps = Caps(start=8, floor=8, ceiling=8)
    pacer = SharedEngine(caps, lambda: waiting, SystemClock())

    async def play(number: int) -> Usage:
        await gone.wait()
        return Usage(1, 1)

    rig = Rig(tmp_path, store, play, pacer=pacer)
    await rig.add(10)
    async with rig.running():
        async with asyncio.timeout(5):
            while len(rig.target.running) < 8:  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.01)
        first = rig.target.calls[0]
        waiting = Waiting(1, 0)
        rig.lanes["up"].make_way()
        async with asyncio.timeout(5):
            while rig.target.running != {first}:  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert rig.target.running == {first}
        gone.set()
        view = await rig.until_done(10)
    assert (view.ok, view.bad) == (10, 0)
    tries = Counter(rig.target.calls)
    assert tries[first] == 1
    assert sorted(tries.values()) == [1, 1, 1, 2, 2, 2, 2, 2, 2, 2]
    assert len(await rig.lines()) == 10


async def test_a_row_makes_way_six_times_at_most(tmp_path: Path, store: StoreClient) -> None:
    """Whatever arrives, it comes to its end."""
    gone = asyncio.Event()

    async def play(number: int) -> Usage:
        await gone.wait()
        return Usage(1, 1)

    pacer = SharedEngine(Caps(), lambda: Waiting(1, 0), SystemClock())
    pacer.first_token(1000.0, 64, 1)
    rig = Rig(tmp_path, store, play, pacer=pacer)
    await rig.add(1)
    async with rig.running():
        for number in range(1, 9):
            async with asyncio.timeout(5):
                while len(rig.target.calls) < min(number, 7):  # noqa: ASYNC110 - a state elsewhere
                    await asyncio.sleep(0.01)
            rig.lanes["up"].make_way()
        await asyncio.sleep(0.05)
        gone.set()
        view = await rig.until_done(1)
    assert view.ok == 1
    assert len(rig.target.calls) == 7


class _Hasty(SharedEngine):
    """Takes each row back before its call's first step."""

    way: Callable[[], None]

    def started(self) -> None:
        super().started()
        asyncio.get_running_loop().call_soon(self.way)

    def makes_way(self, waited: float, tokens: int, ahead: int) -> bool:
        del waited, tokens, ahead
        return True


async def test_a_row_is_taken_back_before_it_began(tmp_path: Path, store: StoreClient) -> None:
    """Its place comes back, and it runs later."""
    pacer = _Hasty(Caps(start=8, floor=8, ceiling=8), lambda: Waiting(0, 0), SystemClock())

    async def play(number: int) -> Usage:
        await asyncio.sleep(0.005)
        return Usage(1, 1)

    rig = Rig(tmp_path, store, play, pacer=pacer)
    pacer.way = rig.lanes["up"].make_way
    await rig.add(20)
    async with rig.running():
        view = await rig.until_done(20)
    assert view.ok == 20
    assert len(rig.target.calls) == 20
    assert not rig.lanes["up"].running
    assert not rig.lanes["up"].prefilling


async def test_the_gate_opens_with_the_first_token(tmp_path: Path, store: StoreClient) -> None:
    """While somebody waits one row at a time is without a token."""
    pacer = SharedEngine(Caps(start=8, floor=8, ceiling=8), lambda: Waiting(1, 0), SystemClock())

    async def play(number: int) -> Usage:
        await asyncio.sleep(0.005)
        return Usage(1, 1)

    rig = Rig(tmp_path, store, play, pacer=pacer)
    await rig.add(10)
    async with rig.running():
        await rig.until_done(10)
    assert rig.target.peak == 1
