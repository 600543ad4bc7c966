"""Places, failures and crashes at one target."""

import asyncio
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from gateway.core.errors import (
    OutcomeUnknown,
    UpstreamFailed,
    UpstreamRefused,
    UpstreamRejected,
    UpstreamThrottled,
)
from gateway.core.usage import Usage
from gateway.core.work import SegmentStatus
from gateway.store.client import StoreClient
from tests.support.rig import SHARD, Rig

_ONE = Usage(1, 1)


async def test_places_refill_one_by_one(tmp_path: Path, store: StoreClient) -> None:
    """A slow row holds one place and nobody else (QUE-17)."""
    slow = asyncio.Event()

    async def play(number: int) -> Usage:
        await (slow.wait() if number == 0 else asyncio.sleep(0.005))
        return _ONE

    rig = Rig(tmp_path, store, play)
    await rig.add(40)
    async with rig.running():
        await rig.until_done(39, 5)
        slow.set()
        await rig.until_done(40)


async def test_no_row_starts_past_its_deadline(tmp_path: Path, store: StoreClient) -> None:
    """Of a process that stood still meanwhile, with a row that waited for its place."""

    async def play(number: int) -> Usage:
        if number < 3:
            await asyncio.Event().wait()
        time.sleep(2.2)  # noqa: ASYNC251 - as a suspended process
        return _ONE

    rig = Rig(tmp_path, store, play)
    rig.dispatcher._limits = replace(rig.limits, ttl_ms=60_000)
    await rig.add(5, window_ms=2000)
    async with rig.running():
        async with asyncio.timeout(5):
            while (await rig.view()).leased or not rig.target.calls:  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.01)
        view = await rig.view()
    assert rig.target.calls == [0, 1, 2, 3]
    assert (view.ok, view.closing) == (1, SegmentStatus.EXPIRED)
    assert await rig.queue.audit(SHARD) == []


async def test_a_rejection_is_a_result(tmp_path: Path, store: StoreClient) -> None:
    """A 4xx is written at once and never tried again."""

    async def play(number: int) -> Usage:
        raise UpstreamRejected("no", target="up", status=400, body=b'{"error":{"message":"no"}}')

    rig = Rig(tmp_path, store, play)
    await rig.add(2)
    async with rig.running():
        view = await rig.until_done(2)
    assert view.bad == 2
    assert len(rig.target.calls) == 2
    assert (await rig.lines())["c0"]["response"]["status_code"] == 400


async def test_failures_use_up_tries(tmp_path: Path, store: StoreClient) -> None:
    """Three tries as the rule says, then the last error is the line."""

    async def play(number: int) -> Usage:
        if number == 0:
            raise UpstreamFailed("broken", target="up", status=500)
        if number == 1:
            raise UpstreamThrottled("slow down", target="up", status=429, retry_after=0.05)
        return _ONE

    rig = Rig(tmp_path, store, play)
    await rig.add(6)
    async with rig.running():
        view = await rig.until_done(6)
    assert (view.ok, view.bad) == (4, 2)
    assert Counter(rig.target.calls)[0] == 3
    lines = await rig.lines()
    assert lines["c0"]["response"]["status_code"] == 500
    assert lines["c1"]["response"]["status_code"] == 429


async def test_a_short_outage_costs_no_try(tmp_path: Path, store: StoreClient) -> None:
    """Refused connections while the target restarts are not counted, and not many are made."""
    calls = 0

    async def play(number: int) -> Usage:
        nonlocal calls
        calls += 1
        if calls < 12:
            raise UpstreamRefused("refused", target="up")
        return _ONE

    rig = Rig(tmp_path, store, play)
    rig.gate.patience = 60.0
    await rig.add(20)
    async with rig.running():
        view = await rig.until_done(20, 15)
    assert (view.ok, view.bad) == (20, 0)


async def test_a_long_outage_ends_rows(tmp_path: Path, store: StoreClient) -> None:
    """Nobody listens for longer than the patience: connection_error (BAT-01)."""

    async def play(number: int) -> Usage:
        raise UpstreamRefused("refused", target="up")

    rig = Rig(tmp_path, store, play)
    await rig.add(5)
    async with rig.running():
        view = await rig.until_done(5)
    assert view.bad == 5
    assert (await rig.lines())["c0"]["error"]["code"] == "connection_error"


async def test_poison_is_found_and_its_neighbours_finish(
    tmp_path: Path, store: StoreClient
) -> None:
    """Whoever is in flight with row 3 is lost with it; only row 3 is given up (QUE-18)."""
    death = asyncio.Event()

    async def play(number: int) -> Usage:
        nonlocal death
        dying = death
        if number == 3:
            await asyncio.sleep(0.02)
            death = asyncio.Event()
            dying.set()
            raise OutcomeUnknown("gone", target="up")
        waiting = asyncio.create_task(dying.wait())
        await asyncio.wait([waiting], timeout=0.05)
        waiting.cancel()
        if dying.is_set():
            raise OutcomeUnknown("gone", target="up")
        return _ONE

    rig = Rig(tmp_path, store, play)
    await rig.add(12)
    async with rig.running():
        view = await rig.until_done(12, 20)
    assert (view.ok, view.bad) == (11, 1)
    assert (await rig.lines())["c3"]["error"]["code"] == "max_deliveries"
    assert 3 <= Counter(rig.target.calls)[3] <= 5


async def test_one_lost_connection_is_an_error_try(tmp_path: Path, store: StoreClient) -> None:
    """Others at the target go on, so it is alive: three tries, and no isolation."""

    async def play(number: int) -> Usage:
        if number == 0:
            await asyncio.sleep(0.01)
            raise OutcomeUnknown("cut", target="up")
        await asyncio.sleep(0.4)
        return _ONE

    rig = Rig(tmp_path, store, play)
    await rig.add(24)
    async with rig.running():
        view = await rig.until_done(24, 20)
    assert (view.ok, view.bad) == (23, 1)
    assert (await rig.lines())["c0"]["error"]["code"] == "upstream_outcome_unknown"
