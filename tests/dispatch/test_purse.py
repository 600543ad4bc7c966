"""Late work within its cost cap: reserved, paid, shared, remembered, reported."""

import asyncio
import logging
from collections import Counter
from pathlib import Path

import pytest

from gateway.core.clock import SystemClock
from gateway.core.price import Price
from gateway.core.usage import Usage
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.purse import CostCap, Purse, PurseKeeper
from gateway.store.client import StoreClient
from gateway.store.late_cost import LateCost
from tests.support.clock import ManualClock
from tests.support.rig import Rig
from tests.support.rows import held_row, lane_of

CAP = CostCap(Price(1.0, 1.0, 1.0), most=0.01, seconds=3600)  # 10,000 tokens an hour


class _Keeper:
    """A dispatcher's purse for ``cloud``, with a lane in front of it."""

    def __init__(
        self, store: StoreClient, name: str = "a", clock: ManualClock | None = None
    ) -> None:
        self.late = True
        self.called: list[str] = []
        self.clock = clock or ManualClock(3600.0 * 100)
        self.purse = Purse(CAP)
        self.keeper = PurseKeeper(
            {"cloud": self.purse},
            lambda _: self.late,
            LateCost(store, name),
            self.called.append,
            self.clock,
        )

    async def spend(self, tokens: int, rows: int) -> int:
        """Run rows until the cap stops them; how many were run."""
        for done in range(rows):
            if not self.purse.affords(tokens):
                await self.keeper.step()
                if not self.purse.affords(tokens):
                    return done
            self.purse.paid(self.purse.reserve(tokens), Usage(tokens, 0))
        return rows


def test_a_row_is_reserved_and_then_paid() -> None:
    """By what it used; without an answer by nothing, or as reserved when one had begun."""
    purse = Purse(CAP)
    assert not purse.open()
    purse.grant(0.001, 0.001)
    assert purse.affords(600)
    first = purse.reserve(600)
    assert not purse.affords(600)
    purse.paid(first, Usage(100, 50))
    assert purse.held == pytest.approx(0.00015)
    purse.dropped(purse.reserve(600), begun=False)
    assert purse.held == pytest.approx(0.00015)
    purse.dropped(purse.reserve(600), begun=True)
    assert purse.held == pytest.approx(0.00075)


def _funded(lane: TargetLane) -> Purse:
    lane.purse = Purse(CAP)
    lane.purse.grant(0.00002, 0.00002)
    return lane.purse


def test_a_lane_starts_what_it_can_pay() -> None:
    """And is worth no rows when it can pay none."""
    lane = lane_of(ManualClock())
    purse = _funded(lane)
    first, second = held_row(0), held_row(1)
    assert lane.wait(10) == 0
    visit = lane.enter(first, suspect=False)
    lane.enter(second, suspect=False)
    assert lane.wait(10) > 0
    assert lane.window() == 0
    lane.ended(visit, Usage(2, 3))
    lane.leave(first)
    assert purse.held == pytest.approx(0.000015)
    lane.leave(second)
    assert purse.held == pytest.approx(0.000005)
    assert lane.wait(10) == 0


def test_an_answer_that_broke_off_is_paid() -> None:
    """The target had begun; what it generated may be on the bill."""
    lane = lane_of(ManualClock())
    purse = _funded(lane)
    row = held_row(0)
    lane.enter(row, suspect=False).head(None)
    lane.leave(row)
    assert purse.held == pytest.approx(0.00001)


async def test_no_more_is_spent_than_the_cap(
    store: StoreClient, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once; another window has its own."""
    one = _Keeper(store)
    await one.keeper.step()
    assert one.called == ["cloud"]
    with caplog.at_level(logging.WARNING):
        assert await one.spend(1000, 50) == 10
        assert await one.spend(1000, 50) == 0
    assert [r.message for r in caplog.records] == [
        "cloud: late work has used up its cost cap of 0.01; no more for 3600 s"
    ]
    one.clock.advance(3600)
    await one.keeper.step()
    assert not one.purse.exhausted
    assert await one.spend(1000, 50) == 10


async def test_a_restart_and_another_dispatcher_share_the_count(store: StoreClient) -> None:
    """What one has spent is gone for the next, also when it died without a word."""
    clock = ManualClock(3600.0 * 100)
    first = _Keeper(store, "a", clock)
    assert await first.spend(1000, 4) == 4
    await first.keeper.step()
    again = _Keeper(store, "b", clock)
    other = _Keeper(store, "c", clock)
    spent = await again.spend(1000, 3) + await other.spend(1000, 50)
    assert 2 <= spent <= 6


async def test_without_late_work_nothing_is_held_back(store: StoreClient) -> None:
    """Others may have what one does not need any more."""
    first, other = _Keeper(store, "a"), _Keeper(store, "b")
    await first.keeper.step()
    first.late = False
    await first.keeper.step()
    assert not first.purse.open()
    assert not first.purse.exhausted
    assert await other.spend(1000, 50) == 10


async def test_rows_beyond_the_cap_stay_with_the_others(tmp_path: Path, store: StoreClient) -> None:
    """A batch over two targets: ten of its rows are paid for, the rest runs where it is free."""

    async def cheap(_: int) -> Usage:
        await asyncio.sleep(0.02)
        return Usage(5, 5)

    async def dear(_: int) -> Usage:
        return Usage(5, 5)

    rig = Rig(tmp_path, store, cheap, 2, {"cloud": dear})
    lane = rig.lanes["cloud"]
    lane.purse = Purse(CostCap(Price(10.0, 10.0, 10.0), most=0.001, seconds=10**9))
    keeper = PurseKeeper(
        {"cloud": lane.purse},
        lambda _: True,
        LateCost(store, "w"),
        lambda _: lane.call(),
        SystemClock(),
    )
    await rig.add(60)
    async with rig.running(keeper):
        view = await rig.until_done(60)
    assert view.ok == 60
    assert Counter(target for target, _ in rig.target.places) == {"up": 50, "cloud": 10}
    assert lane.purse.held == pytest.approx(0.001)


async def test_a_row_that_lacks_money_has_it_fetched_at_once(
    store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the next look, which is far away here."""
    monkeypatch.setattr("gateway.dispatch.purse._EVERY_SECONDS", 60.0)
    one = _Keeper(store)
    task = asyncio.create_task(one.keeper.run())
    async with asyncio.timeout(5):
        while not one.purse.open():  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    assert not one.purse.affords(3000)
    async with asyncio.timeout(5):
        while not one.purse.affords(3000):  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_orderly_end_gives_back_what_was_not_spent(store: StoreClient) -> None:
    """Only what rows cost stays counted."""
    clock = ManualClock(3600.0 * 100)
    one, other = _Keeper(store, "a", clock), _Keeper(store, "b", clock)
    task = asyncio.create_task(one.keeper.run())
    async with asyncio.timeout(5):
        while not one.purse.affords(4000):  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    one.purse.paid(one.purse.reserve(4000), Usage(1000, 0))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await other.spend(1000, 50) == 9
