"""Lease, assemble, run, settle, on a real queue."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.core.usage import Usage
from gateway.core.work import Lease, Turns
from gateway.store.client import StoreClient
from tests.support.rig import SEGMENT, SHARD, Rig

_ONE = Usage(2, 3)


async def _answer(number: int) -> Usage:
    del number
    await asyncio.sleep(0.005)
    return _ONE


async def test_every_row_gets_its_own_line_once(tmp_path: Path, store: StoreClient) -> None:
    """All rows run, never more than the window at once, and the meter adds up."""
    rig = Rig(tmp_path, store, _answer)
    await rig.add(100)
    async with rig.running():
        view = await rig.until_done(100)
    assert (view.ok, view.bad) == (100, 0)
    assert view.usage == Usage(200, 300)
    assert sorted(rig.target.calls) == list(range(100))
    assert rig.target.peak == 4
    lines = await rig.lines()
    assert {k: v["response"]["body"]["n"] for k, v in lines.items()} == {
        f"c{n}": n for n in range(100)
    }


async def test_a_stop_gives_rows_back_without_a_try(tmp_path: Path, store: StoreClient) -> None:
    """What did not finish is leased again at once by another, uncharged."""

    async def stuck(number: int) -> Usage:
        if number > 1:
            await asyncio.Event().wait()
        return _ONE

    rig = Rig(tmp_path, store, stuck)
    await rig.add(10)
    async with rig.running():
        await rig.until_done(2)
    lease = await rig.queue.lease(SHARD, "other", 64, 10**6, 1000)
    assert lease is not None
    assert lease.rows == 8
    assert all(row.crash_tries == row.error_tries == 0 for r in lease.runs for row in r.rows)
    assert await rig.queue.audit(SHARD) == []


async def test_a_cancelled_segment_is_aborted_at_once(tmp_path: Path, store: StoreClient) -> None:
    """Rows in flight are stopped, none is started after, and the segment closes."""

    async def stuck(number: int) -> Usage:
        await asyncio.Event().wait()
        return _ONE

    rig = Rig(tmp_path, store, stuck)
    await rig.add(10)
    async with rig.running():
        async with asyncio.timeout(5):
            while len(rig.target.running) < 4:  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.01)
        await rig.queue.cancel(SHARD, SEGMENT, 30_000)
        async with asyncio.timeout(3):
            while rig.target.running:  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.01)
        seen = len(rig.target.calls)
        async with asyncio.timeout(3):
            while await rig.queue.finish_claim(SHARD, "f", 1000) is None:  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.02)
    assert len(rig.target.calls) == seen


async def test_rows_without_files_are_given_back(tmp_path: Path, store: StoreClient) -> None:
    """A missing input file is no reason to stop: rows wait until it can be read."""
    rig = Rig(tmp_path, store, _answer)
    await rig.add(3)
    index = tmp_path / "jobs" / "batch_1" / "index-0"
    hidden = index.rename(index.with_name("away"))
    async with rig.running():
        await asyncio.sleep(0.3)
        assert not rig.target.calls
        hidden.rename(index)
        await rig.until_done(3)


async def test_lines_that_cannot_be_used_end_alone(tmp_path: Path, store: StoreClient) -> None:
    """Too deep, cut or no request: each such row ends with its own error, the others run."""
    rig = Rig(tmp_path, store, _answer)
    deep = '{"custom_id":"deep","method":"POST","url":"/v1/x","body":{"n":' + "[" * 300 + "]" * 300
    await rig.add(
        8, odd={1: deep + "}}", 3: '{"custom_id":"cut', 5: "5", 6: '{"custom_id":"bare"}'}
    )
    async with rig.running():
        view = await rig.until_done(8)
    assert (view.ok, view.bad) == (4, 4)
    lines = await rig.lines()
    assert lines["deep"]["error"] == {
        "code": "invalid_json_line",
        "message": "The line is nested too deeply.",
    }
    assert lines["bare"]["error"]["code"] == "invalid_json_line"
    assert sorted(rig.target.calls) == [0, 2, 4, 7]


async def test_a_fault_of_leasing_is_no_end(
    tmp_path: Path, store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever leasing meets, the rows are leased at a later try."""
    rig = Rig(tmp_path, store, _answer)
    await rig.add(3)
    lease, tries = rig.queue.lease, 0

    async def broken(*given: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise TypeError("broken")
        return await lease(*given)

    monkeypatch.setattr(rig.queue, "lease", broken)
    async with rig.running():
        view = await rig.until_done(3)
    assert view.ok == 3


async def test_a_lease_knows_how_fast_rows_are_done(
    tmp_path: Path, store: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was committed makes the speed; slack and speed go with every lease of the shard."""
    rig = Rig(tmp_path, store, _answer)
    noted: list[int] = []
    asked: list[Turns] = []
    lease = rig.queue.lease

    async def watched(*args: Any) -> Lease | None:
        asked.append(args[-1])
        return await lease(*args)

    monkeypatch.setattr(rig.queue, "lease", watched)
    monkeypatch.setattr(rig.settler.speed, "note", lambda shard, tokens: noted.append(tokens))
    monkeypatch.setattr(rig.settler.speed, "rate", lambda shard: 7.5 if shard == SHARD else 0.0)
    await rig.add(20)
    async with rig.running():
        await rig.until_done(20)
    assert sum(noted) == 20 * (2 + 3)
    assert set(asked) == {Turns(16, 7.5, rig.limits.slack_ms)}
