"""Everything about batches but HTTP servers and targets, over a real Valkey."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from starlette.routing import Router as Paths
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.api.batches import batch_routes
from gateway.api.body import BodyLimits
from gateway.api.files import file_routes
from gateway.api.jobs import job_routes
from gateway.api.middleware import Errors
from gateway.api.results import results_route
from gateway.batches.finalize import Finalizer
from gateway.batches.finishing import Finisher, Finishing
from gateway.batches.intake import Intake
from gateway.batches.lines import http_error_line, success_line
from gateway.batches.publish import Publisher
from gateway.batches.reconcile import Reconciler
from gateway.batches.results import ResultReader, Waiting
from gateway.batches.rows import BatchRow, RowSource
from gateway.batches.service import BatchService
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.core.usage import Usage
from gateway.core.work import LeasedRun, Quota, RowOutcome
from gateway.jobs.finish import JobFinisher
from gateway.jobs.put_back import JobKeeper
from gateway.jobs.service import JobService
from gateway.policy.model import Policy
from gateway.routing.router import Router
from gateway.schemas.batch import BatchStatus
from gateway.store.batches import BatchStore
from gateway.store.blobs import LocalBlobs
from gateway.store.client import StoreClient
from gateway.store.controls import Controls
from gateway.store.files import FileStore
from gateway.store.job_commands import JobCommands
from gateway.store.jobs import LISTING, JobStore
from gateway.store.keys import shard_of
from gateway.store.part_notes import PartNote
from gateway.store.parts import PartFiles
from gateway.store.queue import QueueClient
from gateway.tenancy.keys import Caller
from tests.support.contract import checked

MODELS = ("m", "n")
ROUTER = Router(
    Policy.model_validate({"targets": {"up": {"base_url": "http://t/v1", "models": [*MODELS]}}})
)
HOUR = "2026010100"
CALLERS = {"a": Caller("key-a", "a"), "b": Caller("key-b", "b", models=frozenset({"n"}))}
Answer = Callable[[BatchRow], bool]


def every(row: BatchRow) -> bool:
    """Every row gets a good answer."""
    return True


async def eventually(check: Callable[[], Awaitable[object]]) -> None:
    """Wait until ``check`` is true, for at most 10 seconds."""
    for _ in range(200):
        if await check():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it did not happen within 10 seconds")


@dataclass
class BatchPlane:
    """The parts, and an HTTP client per tenant: ``a``, and ``b`` who may use model n alone."""

    root: Path
    store: StoreClient
    settings: Settings

    def __post_init__(self) -> None:
        self.clock = SystemClock()
        self.blobs = LocalBlobs(self.root)
        self.controls = Controls(self.blobs)
        self.files = FileStore(self.blobs, self.clock)
        self.queue = QueueClient(self.store, standing=self.controls)
        self.batches = BatchStore(JobCommands(self.store), self.blobs)
        self.service = BatchService(self.batches, self.files, self.queue, self.clock)
        self.publisher = Publisher(self.batches, self.files, self.blobs, self.clock)
        self.intake = Intake(self.batches, self.blobs, self.queue, MODELS, self.clock)
        self.jobs = JobStore(JobCommands(self.store, LISTING), self.blobs)
        self.quota = Quota()
        self.job_service = JobService(
            self.jobs, self.queue, ROUTER, lambda _: self.quota, self.clock
        )
        self.job_keeper = JobKeeper(self.jobs, self.queue, self.controls, self.clock)
        self.finalizer = Finalizer(self.batches, self.blobs, self.queue, self.publisher, self.clock)
        self.finishing = self.another_finishing("f")
        self.reconciler = Reconciler(self.batches, self.queue, self.controls, self.clock)
        self.source = RowSource(self.blobs)
        self.parts = PartFiles(self.root)
        waiting = Waiting(poll=0.02, keep_alive=0.3)
        self.results = ResultReader(
            self.batches, self.files, self.blobs, self.queue, self.clock, waiting
        )
        routes = [
            results_route(self.results),
            *file_routes(self.files, self.settings),
            *batch_routes(self.service, self.settings),
            *job_routes(self.job_service, self.clock, BodyLimits(2**20)),
        ]
        app = Errors(_Callers(Paths(routes, redirect_slashes=False)))
        self.app = app
        self.a, self.b = (
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://t", headers={"x-caller": who}
            )
            for who in "ab"
        )

    def another_finishing(self, name: str, claim_ms: int = 30_000) -> Finishing:
        """What finishes segments, as a dispatcher called ``name`` has it."""
        jobs = JobFinisher(self.jobs, self.blobs, self.queue, self.clock)
        finisher = Finisher(name, claim_ms)
        return Finishing(self.queue, self.finalizer, jobs, finisher, asyncio.Event())

    async def job(self, text: str = "hi", **members: Any) -> dict[str, Any]:
        """A job of tenant a: a chat call that says ``text``."""
        answer = await self.a.post("/v1/jobs", json=job_body(text, **members))
        assert answer.status_code == 202, answer.text
        job: dict[str, Any] = answer.json()
        return job

    async def get_job(self, job_id: str) -> dict[str, Any]:
        """The job as tenant a sees it."""
        job: dict[str, Any] = (await self.a.get(f"/v1/jobs/{job_id}")).json()
        return job

    async def upload(self, content: bytes, purpose: str = "batch") -> str:
        """File id of an upload by tenant a."""
        answer = await self.a.post(
            "/v1/files", files={"file": ("x.jsonl", content)}, data={"purpose": purpose}
        )
        assert answer.status_code == 200, answer.text
        return str(checked(answer.json(), "file")["id"])

    async def create(self, file_id: str, **members: Any) -> dict[str, Any]:
        """A batch of tenant a."""
        body = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            **members,
        }
        answer = await self.a.post("/v1/batches", json=body)
        assert answer.status_code == 200, answer.text
        batch: dict[str, Any] = checked(answer.json(), "batch")
        return batch

    async def start(self, *lines: dict[str, Any], **members: Any) -> str:
        """Upload, create, validate; the batch's id."""
        content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        batch = await self.create(await self.upload(content), **members)
        assert batch["status"] == BatchStatus.VALIDATING
        assert await self.intake.step()
        return str(batch["id"])

    async def get(self, batch_id: str) -> dict[str, Any]:
        """The batch as tenant a sees it."""
        batch: dict[str, Any] = checked(
            (await self.a.get(f"/v1/batches/{batch_id}")).json(), "batch"
        )
        return batch

    async def run(
        self, rows: int, answer: Answer = every, model: str = "m", *, commit: bool = True
    ) -> int:
        """Lease up to ``rows`` rows, write and commit an answer to each; how many there were."""
        lease = await self.queue.lease(shard_of(model), "w", rows, 10**9, 60_000)
        if lease is None:
            return 0
        for run in lease.runs:
            await self._settle(lease.id, run, answer, commit=commit)
        return lease.rows

    async def finish(self) -> None:
        """Finalise whatever is closed."""
        while await self.finishing.step():
            pass

    async def lines(self, file_id: str | None, kind: str = "batch_output_line") -> list[Any]:
        """The checked lines of an output or error file of tenant a."""
        if file_id is None:
            return []
        content = (await self.a.get(f"/v1/files/{file_id}/content")).content
        assert content.endswith(b"\n")
        return [checked(orjson.loads(line), kind) for line in content.split(b"\n")[:-1]]

    async def _settle(
        self, lease_id: str, run: LeasedRun, answer: Answer, *, commit: bool = True
    ) -> None:
        rows = await self.source.read(run)
        good = [answer(row) for row in rows]
        lines = [_line(row, ok) for row, ok in zip(rows, good, strict=True)]
        place = int(run.segment.rpartition(".")[2])
        notes = [
            PartNote(place, row.index, ok, Usage(10, 2) if ok else Usage(), HOUR)
            for row, ok in zip(rows, good, strict=True)
        ]
        refs = await self.parts.append(run.job, list(zip(notes, lines, strict=True)))
        outcomes = [
            RowOutcome(note.index, ref, note.usage, note.ok)
            for note, ref in zip(notes, refs, strict=True)
        ]
        if commit:
            await self.queue.commit(shard_of(run.model), lease_id, run.segment, outcomes, HOUR)


class _Callers:
    """Stands where authentication stands."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        who = dict(scope["headers"])[b"x-caller"].decode()
        scope["headway.caller"] = CALLERS[who]
        scope["app"] = self
        await self._app(scope, receive, send)


def job_body(text: str = "hi", **members: Any) -> dict[str, Any]:
    """The body of ``POST /v1/jobs`` for a chat call that says ``text``."""
    call = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 4}
    return {"endpoint": "/v1/chat/completions", "body": call, **members}


def _line(row: BatchRow, ok: bool) -> bytes:
    if ok:
        body = {"object": "chat.completion", "said": orjson.loads(row.body)}
        return success_line(row.custom_id, 200, f"req_{row.index}", body)
    return http_error_line(row.custom_id, 400, f"req_{row.index}", b"<p>no</p>")


@pytest.fixture
async def plane(tmp_path: Path, store: StoreClient) -> AsyncIterator[BatchPlane]:
    """A fresh plane on an empty server; windows from 1 second up."""
    settings = Settings(data_dir=tmp_path, min_window_seconds=1, max_upload_bytes=2**20)
    plane = BatchPlane(tmp_path / "data", store, settings)
    yield plane
    plane.parts.close()
    await plane.a.aclose()
    await plane.b.aclose()
