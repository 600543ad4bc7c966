"""Finished lines while the batch runs: each row once, for readers that come and go."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import orjson
import pytest

from gateway.batches import results
from gateway.batches.purge import purge_batch
from gateway.core.errors import Draining, InvalidRequest, NotFound, StoreUnavailable
from gateway.schemas.results import ResultsRequest
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane, eventually


async def _read(
    plane: BatchPlane, batch_id: str, after: str = "", *, follow: bool = False, **limits: Any
) -> list[Any]:
    """The lines as JSON."""
    wanted = ResultsRequest(after, follow, limits.get("limit"))
    got = b"".join([piece async for piece in await plane.results.open("a", batch_id, wanted)])
    return [orjson.loads(line) for line in got.split(b"\n") if line]


def _after(lines: list[Any]) -> str:
    return str(lines[-1]["headway_cursor"]) if lines else ""


def _ids(lines: list[Any]) -> list[str]:
    return sorted(line["custom_id"] for line in lines)


async def test_lines_come_while_it_runs(plane: BatchPlane) -> None:
    """What is committed is there at once, in exact form, and the same as in the final files."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(6)))
    assert await _read(plane, batch_id) == []
    await plane.run(2)
    first = await _read(plane, batch_id)
    assert len(first) == 2
    await plane.run(4, lambda row: row.custom_id != "5")
    rest = await _read(plane, batch_id, _after(first))
    assert _ids(first + rest) == [str(n) for n in range(6)]
    await plane.finish()
    batch = await plane.get(batch_id)
    final = await plane.lines(batch["output_file_id"])
    final += await plane.lines(batch["error_file_id"], "batch_error_line")
    seen = {line["custom_id"]: line for line in first + rest}
    for line in final:
        sent = {k: v for k, v in seen[line["custom_id"]].items() if k != "headway_cursor"}
        assert sent == line
    assert await _read(plane, batch_id, _after(rest)) == []


@pytest.mark.parametrize("seed", range(8))
async def test_readers_that_come_and_go(plane: BatchPlane, seed: int) -> None:
    """A reader stopped anywhere, also across the end of segments and batch: no gap, no repeat."""
    chance = random.Random(seed)
    lines = [chat_line(str(n), "y" * chance.randint(1, 900), model="mn"[n % 2]) for n in range(90)]
    batch_id = await plane.start(*lines)
    seen: list[Any] = []
    idle = 0
    while idle < 2:
        model = chance.choice("mn")
        worked = await plane.run(chance.randint(1, 20), lambda row: chance.random() < 0.8, model)
        if chance.random() < 0.3:
            await plane.finish()
        idle = 0 if worked else idle + 1
        seen += await _read(plane, batch_id, _after(seen), limit=chance.randint(1, 15))
    while await plane.run(64, model="m") or await plane.run(64, model="n"):
        pass
    await plane.finish()
    while more := await _read(plane, batch_id, _after(seen), limit=chance.randint(1, 30)):
        seen += more
    assert _ids(seen) == sorted(str(n) for n in range(90))
    batch = await plane.get(batch_id)
    assert batch["status"] == "completed"
    bad = {line["custom_id"] for line in seen if line["response"]["status_code"] != 200}
    errors = await plane.lines(batch["error_file_id"], "batch_error_line")
    assert bad == {line["custom_id"] for line in errors}


async def test_a_lost_queue_repeats_nothing(plane: BatchPlane) -> None:
    """FLUSHALL: a reader with an old cursor gets the other rows alone."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(8)))
    await plane.run(3)
    seen = await _read(plane, batch_id)
    await plane.store.execute_command("FLUSHALL")
    with pytest.raises(StoreUnavailable):
        await _read(plane, batch_id)
    await plane.reconciler.step()
    while await plane.intake.step():
        pass
    while await plane.run(8):
        pass
    await plane.finish()
    seen += await _read(plane, batch_id, _after(seen))
    assert _ids(seen) == [str(n) for n in range(8)]


async def test_following_ends_with_the_batch(plane: BatchPlane) -> None:
    """It stays open, shows signs of life, gets cancelled rows too, and then ends."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(5)))
    wanted = ResultsRequest("", follow=True, limit=None)
    pieces: list[bytes] = []

    async def follow() -> None:
        async for piece in await plane.results.open("a", batch_id, wanted):
            pieces.append(piece)  # noqa: PERF401 - seen while it grows

    reader = asyncio.create_task(follow())
    await plane.run(2)

    async def alive() -> bool:
        return b"".join(pieces).count(b"custom_id") == 2 and b"\n" in pieces

    await eventually(alive)
    assert not reader.done()
    await plane.a.post(f"/v1/batches/{batch_id}/cancel")
    await plane.finish()
    await asyncio.wait_for(reader, 5)
    lines = [orjson.loads(line) for line in b"".join(pieces).split(b"\n") if line]
    assert _ids(lines) == [str(n) for n in range(5)]
    assert sum(line["error"] is not None for line in lines) == 3


async def test_a_batch_without_rows_ends_at_once(plane: BatchPlane) -> None:
    """One that failed has no lines to wait for."""
    batch_id = await plane.start(chat_line("1", "x", model="unknown"))
    assert await _read(plane, batch_id, follow=True) == []


async def test_a_follower_waits_for_the_queue(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the queue is away it is quiet and goes on afterwards; a single look fails."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    load = plane.batches.load
    away = 3

    async def sometimes(name: str) -> Any:
        nonlocal away
        away -= 1
        if away >= 0:
            raise StoreUnavailable("The queue does not answer.")
        return await load(name)

    stream = await plane.results.open("a", batch_id, ResultsRequest("", follow=True, limit=1))
    monkeypatch.setattr(plane.batches, "load", sometimes)
    assert b"".join([piece async for piece in stream]).count(b"custom_id") == 1
    away = 9
    with pytest.raises(StoreUnavailable):
        await _read(plane, batch_id)


async def test_many_holes_keep_the_cursor_short(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other row is done: some lines wait for their neighbours, none is lost."""
    monkeypatch.setattr("gateway.batches.cursor.MOST_RANGES", 4)
    batch_id = await plane.start(*(chat_line(f"{n:02}", "x") for n in range(40)))
    lease = await plane.queue.lease("m.0", "w", 40, 10**9, 60_000)
    assert lease is not None
    [run] = lease.runs
    for half in (0, 1):
        rows = tuple(row for row in run.rows if row.index % 2 == half)
        await plane._settle(lease.id, replace(run, rows=rows), lambda row: True)
        if half == 0:
            seen = await _read(plane, batch_id)
            assert len(seen) == 4
    seen += await _read(plane, batch_id, _after(seen))
    assert _ids(seen) == [f"{n:02}" for n in range(40)]


async def test_what_cannot_be_read(plane: BatchPlane) -> None:
    """Foreign and unknown batches, a foreign cursor, files that were deleted."""
    batch_id = await plane.start(chat_line("1", "x"))
    for tenant, name in (("b", batch_id), ("a", "batch_0")):
        with pytest.raises(NotFound):
            await plane.results.open(tenant, name, ResultsRequest("", follow=True, limit=None))
    with pytest.raises(InvalidRequest):
        await _read(plane, batch_id, "AQAAAAAB")
    await plane.run(1)
    await plane.finish()
    await plane.a.delete(f"/v1/files/{(await plane.get(batch_id))['output_file_id']}")
    with pytest.raises(NotFound):
        await _read(plane, batch_id)


async def test_a_gateway_that_ends_breaks_off(plane: BatchPlane) -> None:
    """A reader must not take that for the end of the batch."""
    batch_id = await plane.start(chat_line("1", "x"))
    waiting = results.Waiting(poll=0.01, stopping=lambda: True)
    reader = results.ResultReader(
        plane.batches, plane.files, plane.blobs, plane.queue, plane.clock, waiting
    )
    stream = await reader.open("a", batch_id, ResultsRequest("", follow=True, limit=None))
    with pytest.raises(Draining):
        await anext(stream)


async def test_a_batch_that_is_purged_breaks_off(plane: BatchPlane) -> None:
    """A follower of it does not wait for ever."""
    batch_id = await plane.start(chat_line("1", "x"))
    stream = await plane.results.open("a", batch_id, ResultsRequest("", follow=True, limit=None))
    await plane.a.post(f"/v1/batches/{batch_id}/cancel")
    await plane.finish()
    await purge_batch(plane.batches, plane.queue, batch_id)
    with pytest.raises(NotFound):
        await anext(stream)
