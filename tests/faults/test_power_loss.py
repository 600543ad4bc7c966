"""The machine loses power: the queue server comes back as it was some commands ago.

Which ones are lost is drawn: its append-only file is cut at a random byte. Files of the data
directory that were synced are there.
"""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gateway.batches.lines import success_line
from gateway.core.settings import Settings
from gateway.core.usage import Usage
from gateway.core.work import Lease, LeasedRun, RowOutcome
from gateway.store.client import connect
from gateway.store.embedded import EmbeddedServer
from gateway.store.keys import shard_of
from gateway.store.part_notes import PartNote
from gateway.store.queue import RetryRule
from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line, ids, usage_of
from tests.support.batch_plane import BatchPlane
from tests.support.meter import delivered
from tests.support.serve import headway, headway_command, one_target, wait_for
from tests.support.upstream import ScriptedUpstream
from tests.support.valkey import server_in

_ROWS = 40
_HOURS = ("2026010100", "2026010101")
_SHARD = shard_of("m")
_TTL_MS = 60_000


class _Worker:
    """Runs rows. Each run of a row has usage of its own, so a mix-up shows."""

    def __init__(self, plane: BatchPlane, chance: random.Random) -> None:
        self._plane = plane
        self._chance = chance
        self._sent: list[tuple[str, str, list[RowOutcome], str]] = []
        self.runs = 0

    async def lease(self, rows: int) -> Lease | None:
        """Rows, for long."""
        return await self._plane.queue.lease(_SHARD, "w", rows, 10**9, _TTL_MS)

    async def run(self, lease: Lease, *, commit: bool) -> None:
        """Write a line for each row, and commit some or all of them."""
        for run in lease.runs:
            hour = self._chance.choice(_HOURS)
            outcomes = await self._write(run, hour)
            if commit:
                await self._commit(lease.id, run.segment, outcomes, hour)
            self._sent.append((lease.id, run.segment, outcomes, hour))

    async def commit_again(self) -> None:
        """Answers were lost with the server: results are sent again, some of them twice."""
        for sent in self._chance.choices(self._sent, k=len(self._sent)):
            await self._commit(*sent)

    async def _commit(
        self, lease_id: str, segment: str, outcomes: list[RowOutcome], hour: str
    ) -> None:
        await self._plane.queue.commit(_SHARD, lease_id, segment, outcomes, hour)

    async def _write(self, run: LeasedRun, hour: str) -> list[RowOutcome]:
        place = int(run.segment.rpartition(".")[2])
        lines = []
        for row in await self._plane.source.read(run):
            usage = Usage(self._chance.randint(1, 99), self._chance.randint(1, 99))
            body = {"object": "chat.completion", "usage": usage.to_openai()}
            line = success_line(row.custom_id, 200, f"req_{self.runs}", body)
            lines.append((PartNote(place, row.index, True, usage, hour), line))
            self.runs += 1
        refs = await self._plane.parts.append(run.job, lines)
        return [
            RowOutcome(note.index, ref, note.usage, note.ok)
            for (note, _), ref in zip(lines, refs, strict=True)
        ]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server of the test's own."""
    server = server_in(tmp_path)
    server.start()
    yield server
    server.stop()


_SEEDS = [pytest.param(n, marks=pytest.mark.long if n >= 10 else ()) for n in range(200)]


@pytest.mark.parametrize("seed", _SEEDS)
async def test_a_cut_log_costs_nothing(tmp_path: Path, server: EmbeddedServer, seed: int) -> None:
    """Whatever was undone, the batch ends, each id once, billed as its output says."""
    chance = random.Random(seed)
    plane = BatchPlane(tmp_path, connect(server.url), Settings(data_dir=tmp_path))
    worker = _Worker(plane, chance)
    await plane.reconciler.look()
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(_ROWS)))
    for _ in range(chance.randint(0, 12)):
        lease = await worker.lease(chance.randint(1, 6))
        if lease is not None and chance.random() < 0.9:
            await worker.run(lease, commit=chance.random() < 0.8)
    if chance.random() < 0.3:
        await _complete(plane, worker)
    _cut(server, tmp_path, chance)
    steps = [worker.commit_again, plane.reconciler.look]
    chance.shuffle(steps)
    for step in steps:
        await step()
    await _complete(plane, worker)
    batch = await plane.get(batch_id)
    assert batch["status"] == "completed"
    output = await plane.lines(batch["output_file_id"])
    assert ids(output) == sorted(map(str, range(_ROWS)))
    meter = await plane.queue.meter(_SHARD, "a", _HOURS)
    assert (meter["m"]["prompt"], meter["m"]["completion"]) == usage_of(output)
    assert (meter["m"]["requests"], meter["m"]["failed"]) == (_ROWS, 0)
    assert (batch["usage"]["input_tokens"], batch["usage"]["output_tokens"]) == usage_of(output)
    assert await plane.queue.audit(_SHARD) == []
    await plane.store.aclose()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_running_gateway_goes_on(tmp_path: Path, upstream: ScriptedUpstream, seed: int) -> None:
    """Dispatcher and gateway live on while the queue server loses what it did last."""
    chance = random.Random(seed)
    upstream.pace = Pace(first=0.05)
    lines = [chat_line(str(n), f"row {n}", max_tokens=1 + n % 3) for n in range(300)]
    with headway(tmp_path, one_target(upstream.url, window=8)) as running:
        client = BatchClient(running)
        batch_id = client.start(lines)["id"]
        wait_for(lambda: client.done(batch_id) >= chance.randint(50, 200), 60)
        os.kill(running.pid, signal.SIGSTOP)  # nobody starts the server before its log is cut
        queue = running.child("queue")
        os.kill(queue, signal.SIGKILL)
        wait_for(lambda: psutil.Process(queue).status() == psutil.STATUS_ZOMBIE, 10)
        _cut_log(running.data_dir, chance)
        os.kill(running.pid, signal.SIGCONT)
        batch = client.ended(batch_id, 100)
        assert batch["status"] == "completed"
        output = client.output(batch)
        assert ids(output) == sorted(map(str, range(300)))
        wait_for(lambda: delivered(running) == usage_of(output), 10, "the bill")
        audit = headway_command(["queue", "audit", "--data-dir", str(running.data_dir)])
        assert audit.returncode == 0, audit.stdout


async def _complete(plane: BatchPlane, worker: _Worker) -> None:
    """What dispatchers do until nothing is left to do."""
    await plane.reconciler.look()
    for claims in ("gw:{sys}:intake", f"gw:{{{_SHARD}}}:exp", f"gw:{{{_SHARD}}}:fin"):
        await _run_out(plane, claims)
    while await plane.intake.step():
        pass
    await plane.queue.reap(_SHARD, 100, RetryRule(max_crashes=1000))
    await plane.queue.tick(_SHARD, 100)
    while (lease := await worker.lease(8)) is not None:
        await worker.run(lease, commit=True)
    await plane.finish()


async def _run_out(plane: BatchPlane, claims: str) -> None:
    """Let a minute pass for those who held something when the power went."""
    for name in await plane.store.zrange(claims, 0, -1):
        await plane.store.execute_command("ZADD", claims, "XX", 1, name)


def _cut(server: EmbeddedServer, data: Path, chance: random.Random) -> None:
    """Kill the server, cut its log, start it again."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    _cut_log(data, chance)
    server.start()


def _cut_log(data: Path, chance: random.Random) -> None:
    """Anywhere, or more likely in its last quarter."""
    [log] = (data / "queue").rglob("*.incr.aof")
    size = log.stat().st_size
    low = 0 if chance.random() < 0.3 else size * 3 // 4
    os.truncate(log, chance.randint(low, size))
