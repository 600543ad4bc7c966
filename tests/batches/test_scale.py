"""BAT-20: large files cost neither memory nor the patience of others."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter

import httpx
import orjson
import psutil
import pytest

from gateway.core.settings import Settings
from gateway.store.client import StoreClient
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane
from tests.support.machine import slowness
from tests.support.served import served

TEXT = "word " * 760


class _Watch:
    """Highest resident memory, and how long others wait for an answer."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._process = psutil.Process()
        self.start = self.peak = self._process.memory_info().rss
        self.waits: list[float] = []

    async def run(self) -> None:
        while True:
            began = perf_counter()
            await self._client.get("/v1/files/none")
            self.waits.append(perf_counter() - began)
            self.peak = max(self.peak, self._process.memory_info().rss)
            await asyncio.sleep(0.02)

    def check(self) -> None:
        assert self.peak - self.start < 100 * 2**20
        assert sorted(self.waits)[int(len(self.waits) * 0.99)] < 0.1 * slowness()


async def _form(rows: int, digest: "hashlib._Hash") -> AsyncIterator[bytes]:
    yield (
        b'--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        b'--XX\r\nContent-Disposition: form-data; name="file"; filename="x.jsonl"\r\n\r\n'
    )
    for start in range(0, rows, 16):
        numbers = range(start, min(start + 16, rows))
        piece = b"".join(orjson.dumps(chat_line(str(n), TEXT)) + b"\n" for n in numbers)
        digest.update(piece)
        yield piece
    yield b"\r\n--XX--\r\n"


async def _download(client: httpx.AsyncClient, file_id: str) -> tuple[int, str]:
    lines, digest = 0, hashlib.sha256()
    async with client.stream("GET", f"/v1/files/{file_id}/content") as answer:
        async for piece in answer.aiter_bytes():
            lines += piece.count(b"\n")
            digest.update(piece)
    return lines, digest.hexdigest()


@pytest.mark.parametrize("rows", [2_000, pytest.param(50_000, marks=pytest.mark.long)])
async def test_upload_run_download(tmp_path: Path, store: StoreClient, rows: int) -> None:
    """Upload, validate, run, finalise and download stay below 100 MB; others wait under 100 ms."""
    plane = BatchPlane(tmp_path, store, Settings(data_dir=tmp_path))
    async with (
        served(plane.app) as url,
        httpx.AsyncClient(base_url=url, headers={"x-caller": "a"}, timeout=60) as client,
    ):
        watch = _Watch(client)
        watching = asyncio.create_task(watch.run())
        digest = hashlib.sha256()
        kind = {"content-type": "multipart/form-data; boundary=XX"}
        answer = await client.post("/v1/files", content=_form(rows, digest), headers=kind)
        file_id = answer.json()["id"]
        assert await _download(client, file_id) == (rows, digest.hexdigest())
        batch = await plane.create(file_id)
        assert await plane.intake.step()
        while await plane.run(64):
            pass
        await plane.finish()
        batch = await plane.get(batch["id"])
        assert batch["request_counts"]["completed"] == rows
        assert (await _download(client, batch["output_file_id"]))[0] == rows
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    plane.parts.close()
    await plane.a.aclose()
    await plane.b.aclose()
    watch.check()
