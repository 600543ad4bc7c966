"""A dispatcher in the test's own process: real queue, real files, targets played by a function."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from gateway.batches.ordering import ROW
from gateway.batches.rows import RowSource
from gateway.core.clock import Clock, SystemClock
from gateway.core.usage import ReportedUsage, Usage
from gateway.core.work import SegmentSpec, SegmentView
from gateway.dispatch.gate import Gate
from gateway.dispatch.held import Holdings
from gateway.dispatch.lane import TargetLane
from gateway.dispatch.loop import Dispatcher, LeaseLimits
from gateway.dispatch.pool import Pool
from gateway.dispatch.process import Runs, run_until
from gateway.dispatch.rate import RateBudget
from gateway.dispatch.reaper import Reaper
from gateway.dispatch.renewer import Renewer
from gateway.dispatch.run import RowRunner
from gateway.dispatch.settle import Settler
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from gateway.pacing.window import FixedWindow, Pacer
from gateway.routing.offline import RowAnswer, RowCaller, RowPlace
from gateway.store.blobs import LocalBlobs
from gateway.store.client import StoreClient
from gateway.store.parts import PartFiles, PartReader
from gateway.store.queue import QueueClient, RetryRule

SHARD = "m.0"
JOB = "batch_1"
SEGMENT = f"{JOB}.0"
Play = Callable[[int], Awaitable[Usage | ReportedUsage]]


class PlayedTarget:
    """Stands for the targets: a ``play`` gets the row's number, answers its usage or raises.

    ``calls`` are the rows' numbers, ``places`` the target and credential of each.
    """

    def __init__(self, plays: Mapping[str, Play]) -> None:
        self.plays = plays
        self.calls: list[int] = []
        self.places: list[tuple[str, int]] = []
        self.running: set[int] = set()
        self.peak = 0

    async def call(
        self, model: str, endpoint: str, body: bytes, request_id: str, at: RowPlace
    ) -> RowAnswer:
        """One attempt."""
        number = int(json.loads(body)["n"])
        self.calls.append(number)
        self.places.append((at.target, at.key))
        self.running.add(number)
        self.peak = max(self.peak, len(self.running))
        try:
            usage = await self.plays[at.target](number)
        finally:
            self.running.discard(number)
        at.head(None)
        at.first_token()
        told = ReportedUsage(usage.prompt, usage.completion)
        return RowAnswer(200, {"n": number}, told, at.target, model)


def _lane(name: str, pacer: Pacer, clock: Clock) -> TargetLane:
    gate = Gate(clock, base=0.02, patience=0.3)
    return TargetLane(name, pacer, gate, [RateBudget(60), RateBudget(60)], clock)


class Rig:
    """One dispatcher over one pool: the target ``up``, then ``others``. Times are short."""

    def __init__(
        self,
        tmp_path: Path,
        store: StoreClient,
        play: Play,
        window: int = 4,
        others: Mapping[str, Play] | None = None,
        pacer: Pacer | None = None,
        *,
        name: str = "w",
    ) -> None:
        clock = SystemClock()
        self.root = tmp_path
        self.queue = QueueClient(store)
        self.target = PlayedTarget({"up": play, **(others or {})})
        self.retry = RetryRule(3, 20, 50)
        self.holdings = Holdings(clock)
        self.parts = PartFiles(tmp_path)
        self.journal = Journal(tmp_path / "journal")
        self.source = RowSource(LocalBlobs(tmp_path))
        self.settler = Settler(self.queue, self.parts, self.holdings, self.retry, clock)
        self.runner = RowRunner(cast("RowCaller", self.target), JournalLedger(self.journal), clock)
        self.lanes = {
            name: _lane(name, pacer or FixedWindow(window), clock) for name in self.target.plays
        }
        self.gate = self.lanes["up"].gate
        self.pool = pool = Pool(
            list(self.lanes.values()), self.runner, self.settler, self.holdings, 0.02
        )
        self.limits = LeaseLimits(name, 64, 10**6, 1000, 16)
        self.dispatcher = Dispatcher(
            self.queue, self.source, self.holdings, self.settler, {SHARD: pool}, self.limits
        )
        self.renewer = Renewer(self.queue, self.holdings, name, 1000, self.dispatcher.abort)
        self.reaper = Reaper(self.queue, self.source, self.settler, self.retry, 0.1)

    async def add(
        self,
        rows: int,
        window_ms: int = 60_000,
        *,
        odd: Mapping[int, str] | None = None,
        endpoint: str = "/v1/chat/completions",
    ) -> None:
        """A job of ``rows`` rows whose bodies are their numbers; ``odd`` lines are as given."""
        folder = self.root / "jobs" / JOB
        folder.mkdir(parents=True)
        lines = [
            json.dumps({"custom_id": f"c{n}", "method": "POST", "url": "/v1/x", "body": {"n": n}})
            for n in range(rows)
        ]
        for n, line in (odd or {}).items():
            lines[n] = line
        table, offset = b"", 0
        for line in lines:
            table += ROW.pack(offset, len(line), 10, 0)
            offset += len(line) + 1
        (folder / "input").write_text("".join(f"{line}\n" for line in lines))
        (folder / "index-0").write_bytes(table)
        tokens = (10).to_bytes(4, "little") * rows
        spec = SegmentSpec(
            SEGMENT,
            JOB,
            "t",
            "m",
            tokens,
            window_ms,
            f"jobs/{JOB}/input",
            f"jobs/{JOB}/index-0",
            endpoint,
        )
        assert await self.queue.enqueue(SHARD, spec)

    @contextlib.asynccontextmanager
    async def running(self, *others: Runs) -> AsyncIterator[None]:
        """Dispatch meanwhile; at the end, an orderly stop."""
        stop = asyncio.Event()
        keepers = (self.renewer, self.settler)
        loops = (self.reaper, *others)
        task = asyncio.create_task(run_until(stop, self.dispatcher, keepers, loops))
        try:
            yield
        finally:
            stop.set()
            await task
            self.parts.close()
            self.journal.close()

    async def view(self) -> SegmentView:
        """The segment as it stands."""
        view = await self.queue.segment(SHARD, SEGMENT)
        assert view is not None
        return view

    async def until_done(self, rows: int, seconds: float = 30.0) -> SegmentView:
        """Wait until so many rows have a result."""
        async with asyncio.timeout(seconds):
            while (view := await self.view()).ok + view.bad < rows:  # noqa: ASYNC110 - a state elsewhere
                await asyncio.sleep(0.01)
        return view

    async def lines(self) -> dict[str, dict[str, Any]]:
        """The committed lines by custom id."""
        done, refs = await self.queue.refs(SHARD, SEGMENT)
        reader = PartReader(self.root, JOB)
        found = {}
        for row in range(len(refs) // 16):
            if done[row // 8] & (0x80 >> row % 8):
                ref = refs[16 * row : 16 * row + 16]
                part, offset, length = (
                    int.from_bytes(ref[a:b], "little") for a, b in ((0, 4), (4, 12), (12, 16))
                )
                line = json.loads(reader.read(part, offset, length))
                found[line["custom_id"]] = line
        reader.close()
        return found
