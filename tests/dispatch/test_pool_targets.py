"""Rows with several targets and credentials."""

import asyncio
from collections import Counter
from pathlib import Path

from gateway.core.errors import (
    OutcomeUnknown,
    UpstreamCredential,
    UpstreamFailed,
    UpstreamThrottled,
)
from gateway.core.usage import Usage
from gateway.store.client import StoreClient
from gateway.store.queue import RetryRule
from tests.support.rig import Play, Rig

_ONE = Usage(1, 1)


async def test_a_full_target_leaves_none_idle(tmp_path: Path, store: StoreClient) -> None:
    """Rows take the first target while it has places, and the second for the rest."""
    release = asyncio.Event()

    async def stuck(number: int) -> Usage:
        await release.wait()
        return _ONE

    async def quick(number: int) -> Usage:
        await asyncio.sleep(0.005)
        return _ONE

    rig = Rig(tmp_path, store, stuck, others={"two": quick})
    await rig.add(30)
    async with rig.running():
        await rig.until_done(26, 5)
        assert Counter(target for target, _ in rig.target.places) == {"up": 4, "two": 26}
        release.set()
        await rig.until_done(30)
    assert len(rig.target.calls) == 30


async def test_a_row_goes_to_the_next_target_before_it_is_charged(
    tmp_path: Path, store: StoreClient
) -> None:
    """What fails at one target is answered by the other, and no try is counted."""

    async def broken(number: int) -> Usage:
        if number % 4 == 0:
            raise UpstreamFailed("broken", target="up", status=500)
        return _ONE

    async def fine(number: int) -> Usage:
        return _ONE

    rig = Rig(tmp_path, store, broken, others={"two": fine})
    rig.retry = RetryRule(1, 20, 50)
    rig.settler._retry = rig.retry
    await rig.add(40)
    async with rig.running():
        view = await rig.until_done(40)
    assert (view.ok, view.bad) == (40, 0)


async def test_an_outage_of_all_targets_is_waited_for(tmp_path: Path, store: StoreClient) -> None:
    """Both fail every row for a while, then come back: nobody's tries are used up."""
    down = True
    seen = 0

    async def play(number: int) -> Usage:
        nonlocal seen
        seen += 1
        await asyncio.sleep(0.002)
        if down:
            raise UpstreamFailed("down", target="x", status=500)
        return _ONE

    rig = Rig(tmp_path, store, play, others={"two": play})
    for lane in rig.lanes.values():
        lane.gate.patience = 60.0
    await rig.add(40)
    async with rig.running():
        await asyncio.sleep(1.0)
        assert seen < 40
        down = False
        view = await rig.until_done(40)
    assert (view.ok, view.bad) == (40, 0)


async def test_a_throttle_is_waited_for(tmp_path: Path, store: StoreClient) -> None:
    """A target that says Retry-After gets nothing until then; no row loses a try by it."""
    calls: list[float] = []

    async def play(number: int) -> Usage:
        calls.append(asyncio.get_running_loop().time())
        if len(calls) <= 4:
            raise UpstreamThrottled("slow", target="up", status=429, retry_after=0.5)
        return _ONE

    rig = Rig(tmp_path, store, play)
    rig.settler._retry = RetryRule(1, 20, 50)
    for budget in rig.lanes["up"]._budgets[1:]:
        budget._closed_until = 1e12
    await rig.add(20)
    async with rig.running():
        view = await rig.until_done(20)
    assert (view.ok, view.bad) == (20, 0)
    assert calls[4] - calls[3] > 0.45


async def test_a_refused_key_gives_way_to_the_next(tmp_path: Path, store: StoreClient) -> None:
    """Rows go on with the second credential; without one left the answer is their line."""
    refused = {0}
    rig: Rig

    async def play(number: int) -> Usage:
        if rig.target.places[-1][1] in refused:
            raise UpstreamCredential("no", target="up", status=401)
        return _ONE

    rig = Rig(tmp_path, store, play)
    await rig.add(20)
    async with rig.running():
        view = await rig.until_done(20)
    assert (view.ok, view.bad) == (20, 0)
    assert 1 <= Counter(rig.target.places)["up", 0] <= 4


async def test_no_key_and_no_other_target(tmp_path: Path, store: StoreClient) -> None:
    """Rows that nobody lets in end at once, each with its line."""

    async def play(number: int) -> Usage:
        raise UpstreamCredential("no", target="up", status=401, code="upstream_credential")

    rig = Rig(tmp_path, store, play)
    await rig.add(20)
    async with rig.running():
        view = await rig.until_done(20)
    assert (view.ok, view.bad) == (0, 20)
    assert (await rig.lines())["c7"]["error"]["code"] == "upstream_credential"


async def test_a_suspect_is_alone_at_its_target_only(tmp_path: Path, store: StoreClient) -> None:
    """A row that kills its target runs alone there in the end; the other target goes on."""
    here: dict[str, set[int]] = {"up": set(), "two": set()}
    beside: list[tuple[set[int], bool]] = []

    def target(name: str) -> Play:
        async def play(number: int) -> Usage:
            rows = here[name]
            rows.add(number)
            try:
                await asyncio.sleep(0.1 if number == 0 else 0.02)
                if number == 0:
                    other = here["two" if name == "up" else "up"]
                    beside.append((rows - {0}, bool(other)))
                while 0 in rows and number != 0:
                    await asyncio.sleep(0.005)
                    if 0 not in rows:
                        raise OutcomeUnknown("gone", target=name)
            finally:
                rows.discard(number)
            if number == 0:
                raise OutcomeUnknown("gone", target=name)
            return _ONE

        return play

    rig = Rig(tmp_path, store, target("up"), others={"two": target("two")})
    await rig.add(800)
    async with rig.running():
        view = await rig.until_done(800, 30)
    assert (view.ok, view.bad) == (799, 1)
    assert (await rig.lines())["c0"]["error"]["code"] == "max_deliveries"
    assert beside[-1][0] == set()
    assert any(busy for _, busy in beside[1:])
