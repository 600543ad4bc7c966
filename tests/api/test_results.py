"""GET /v1/batches/{id}/results as a client sees it."""

import asyncio
import tracemalloc

import httpx
import orjson
import pytest

from gateway.batches.lines import success_line
from gateway.batches.results import Waiting
from gateway.core.usage import Usage
from gateway.core.work import RowOutcome
from gateway.store.part_notes import PartNote
from tests.support.batch import chat_line
from tests.support.batch_plane import HOUR, BatchPlane
from tests.support.served import served


async def test_lines_as_in_the_files(plane: BatchPlane) -> None:
    """JSON lines with a cursor each; a page of them, then the rest."""
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(3)))
    await plane.run(3)
    path = f"/v1/batches/{batch_id}/results"
    first = await plane.a.get(path, params={"limit": "2"})
    assert first.headers["content-type"].startswith("application/x-ndjson")
    lines = [orjson.loads(line) for line in first.content.splitlines()]
    assert len(lines) == 2
    rest = await plane.a.get(path, params={"after": lines[-1]["headway_cursor"]})
    lines += [orjson.loads(line) for line in rest.content.splitlines()]
    assert sorted(line["custom_id"] for line in lines) == ["0", "1", "2"]
    assert (await plane.a.head(path, params={"follow": "1"})).content == b""


async def test_faults(plane: BatchPlane) -> None:
    """404 and 400 in OpenAI's shape, before any line."""
    batch_id = await plane.start(chat_line("1", "x"))
    assert (await plane.b.get(f"/v1/batches/{batch_id}/results")).status_code == 404
    answer = await plane.a.get(f"/v1/batches/{batch_id}/results", params={"after": "x"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "after")


async def test_a_slow_reader_holds_no_memory(plane: BatchPlane) -> None:
    """20 MB of lines for somebody who does not read: the gateway keeps a small part of them."""
    batch_id = await plane.start(*(chat_line(str(n), "y") for n in range(700)))
    while lease := await plane.queue.lease("m.0", "w", 100, 10**9, 60_000):
        [run] = lease.runs
        lines = [success_line(str(r.index), 200, "r", {"x": "y" * 30_000}) for r in run.rows]
        notes = [PartNote(0, row.index, True, Usage(), HOUR) for row in run.rows]
        refs = await plane.parts.append(batch_id, list(zip(notes, lines, strict=True)))
        outcomes = [
            RowOutcome(row.index, ref, Usage(), True)
            for row, ref in zip(run.rows, refs, strict=True)
        ]
        await plane.queue.commit("m.0", lease.id, run.segment, outcomes, HOUR)
    async with served(plane.app) as url, httpx.AsyncClient(headers={"x-caller": "a"}) as client:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        async with client.stream("GET", f"{url}/v1/batches/{batch_id}/results") as answer:
            pieces = answer.aiter_bytes()
            got = len(await anext(pieces))
            await asyncio.sleep(0.5)
            grown = tracemalloc.get_traced_memory()[0] - before
            got += sum([len(piece) async for piece in pieces])
        tracemalloc.stop()
    assert got > 20_000_000
    assert grown < 5_000_000


async def test_a_broken_answer_has_no_end(
    plane: BatchPlane, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be whole is cut, so that no reader takes it for whole; that is no fault."""
    batch_id = await plane.start(chat_line("1", "x"))
    await plane.run(1)
    monkeypatch.setattr(plane.results, "_waiting", Waiting(poll=0.01, stopping=lambda: True))
    async with served(plane.app) as url, httpx.AsyncClient(headers={"x-caller": "a"}) as client:
        path = f"{url}/v1/batches/{batch_id}/results?follow=1"
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(path)
    assert "Traceback" not in caplog.text
