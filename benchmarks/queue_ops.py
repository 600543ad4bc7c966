"""What the queue costs the server, as ratios to EVALSHA of one SET in the same run.

    .venv/bin/python benchmarks/queue_ops.py

Drives the shipped client and scripts against an embedded server of its own. Rates are rows per
second of *server* CPU (INFO cpu before and after): the Python side is not in them. The yardstick is
pipelined and the client's calls are not, so its system calls count against the queue.
"""

import asyncio
import random
import statistics
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from gateway.core.settings import Settings
from gateway.core.usage import Usage
from gateway.core.work import Lease, LeasedRun, PartRef, RowOutcome, RunOutcomes, SegmentSpec
from gateway.jobs.enqueues import Enqueues
from gateway.store.client import StoreClient, connect
from gateway.store.embedded import EmbeddedServer
from gateway.store.queue import QueueClient

SHARD = "bench.0"
HOUR = "2026010100"
ROWS = 64
LEASES = 300
TTL_MS = 600_000
# Runs in one commit: of 16 jobs that ended together, or of one lease of 64 rows of four tenants.
RUNS = 16
# Calls in flight, as from a dispatcher that settles many segments.
AT_ONCE = 16
_SET = "return redis.call('SET',KEYS[1],ARGV[1])"


class Bench:
    """One server, one client; ``rate`` measures against the server's own CPU counters."""

    def __init__(self, client: StoreClient) -> None:
        self.client = client
        self.queue = QueueClient(client)
        self.enqueues = Enqueues(self.queue)
        self.yardstick = 1.0

    async def info(self, section: str) -> dict[str, float]:
        """A section of INFO."""
        return dict(await self.client.info(section))

    async def cpu(self) -> float:
        """Seconds of CPU that the server has used."""
        used = await self.info("cpu")
        return used["used_cpu_user"] + used["used_cpu_sys"]

    async def cost(self, work: Callable[[], Awaitable[int]]) -> tuple[int, float]:
        """What ``work`` returns, and the server seconds it took."""
        before = await self.cpu()
        done = await work()
        return done, max(await self.cpu() - before, 1e-6)

    async def empty(self) -> None:
        """Start from nothing."""
        await self.client.flushall()


def spec(number: int, rows: int, tenants: int) -> SegmentSpec:
    """A segment of rows of mixed size."""
    rng = random.Random(number)  # noqa: S311 - sizes, no secrets
    return SegmentSpec(
        segment=f"job{number}.0",
        job=f"job{number}",
        tenant=f"t{number % tenants}",
        model="bench",
        tokens=struct.pack(f"<{rows}I", *(rng.randint(50, 2000) for _ in range(rows))),
        window_ms=86_400_000,
        input_ref="files/file-0123456789abcdef01234567/data",
        index_ref=f"jobs/job{number}/index-0",
        endpoint="/v1/chat/completions",
        weight=1 + number % 3,
    )


async def fill(bench: Bench, rows: int, each: int, tenants: int = 10) -> int:
    """Enqueue ``rows`` rows in segments of ``each``; those of one row as jobs are."""
    numbers = iter(range(rows // each))
    send = bench.enqueues.send if each == 1 else bench.queue.enqueue

    async def some() -> None:
        for number in numbers:
            await send(SHARD, spec(number, each, tenants))

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return rows


async def take(bench: Bench, into: list[Lease], calls: int = LEASES) -> int:
    """Lease ``calls`` times."""
    for _ in range(calls):
        lease = await bench.queue.lease(SHARD, "w", ROWS, 10**9, TTL_MS)
        if lease is None:
            break
        into.append(lease)
    return sum(lease.rows for lease in into)


async def settle(bench: Bench, leases: list[Lease]) -> int:
    """Commit every row of the leases, as a dispatcher does: what ended together in one step."""
    runs = [
        RunOutcomes(lease.id, run.segment, _done(run)) for lease in leases for run in lease.runs
    ]
    steps = iter([runs[at : at + RUNS] for at in range(0, len(runs), RUNS)])

    async def some() -> int:
        fresh = 0
        for step in steps:
            answers = await bench.queue.commit_all(SHARD, step, HOUR)
            fresh += sum(answer.fresh for answer in answers if answer)
        return fresh

    return sum(await asyncio.gather(*(some() for _ in range(AT_ONCE))))


def _done(run: LeasedRun) -> list[RowOutcome]:
    return [
        RowOutcome(row.index, PartRef(1, row.index * 900, 900), Usage(500, 200), ok=True)
        for row in run.rows
    ]


def show(name: str, value: float, unit: str, target: str) -> None:
    """One line of the result; ``target`` is ``<=`` or ``>=`` and a figure."""
    relation, _, figure = target.partition(" ")
    good = value <= float(figure) if relation == "<=" else value >= float(figure)
    print(f"{name:<40} {value:>9.3f} {unit:<10} {target:<8} {'ok' if good else 'MISSED'}")  # noqa: T201


async def yardstick(bench: Bench) -> None:
    """EVALSHA of one SET per server second, pipelined by 1,000; the median of three."""
    sha = await bench.client.script_load(_SET)
    rates = []
    for _ in range(3):

        async def sets() -> int:
            for _ in range(50):
                pipe = bench.client.pipeline(transaction=False)
                for _ in range(1000):
                    pipe.evalsha(sha, 1, "k", b"x" * 64)
                await pipe.execute()
            return 50_000

        done, seconds = await bench.cost(sets)
        rates.append(done / seconds)
    bench.yardstick = statistics.median(rates)
    print(f"EVALSHA of one SET: {bench.yardstick:,.0f} per server second")  # noqa: T201


async def segments(bench: Bench) -> None:
    """Batches of 50,000 rows: bytes, enqueue, lease, commit."""
    await bench.empty()
    memory = (await bench.info("memory"))["used_memory"]
    times = []
    for number in range(20):
        work = spec(number, 50_000, 10)
        _, seconds = await bench.cost(partial(bench.queue.enqueue, SHARD, work))
        times.append(seconds)
    show("enqueue of 50,000 rows", statistics.median(times) * 1000, "ms", "<= 3")
    held = ((await bench.info("memory"))["used_memory"] - memory) / 1_000_000
    show("bytes per queued row (1e6 queued)", held, "B", "<= 12")
    leases: list[Lease] = []
    rows, seconds = await bench.cost(lambda: take(bench, leases))
    ratio = rows / seconds / bench.yardstick
    show(f"lease of {ROWS}, rows", ratio, "x EVALSHA", ">= 1.0")
    rows, seconds = await bench.cost(lambda: settle(bench, leases))
    ratio = rows / seconds / bench.yardstick
    show("commit, rows", ratio, "x EVALSHA", ">= 0.40")


async def lease_cost(bench: Bench, rows: int, each: int, tenants: int) -> float:
    """Server microseconds of one lease call at this depth; the median of five stretches."""
    await bench.empty()
    await fill(bench, rows, each, tenants)
    costs = []
    for _ in range(5):
        leases: list[Lease] = []
        _, seconds = await bench.cost(partial(take, bench, leases, LEASES // 10))
        costs.append(1e6 * seconds / len(leases))
    return statistics.median(costs)


async def depth(bench: Bench) -> None:
    """A lease costs the same however much waits, and little more with many tenants."""
    few, many = (
        await lease_cost(bench, 10_000, 10_000, 1),
        await lease_cost(bench, 10**6, 50_000, 1),
    )
    show("lease at 1e6 over 1e4 queued", many / few, "x", "<= 1.25")
    few, many = await lease_cost(bench, 10**5, 1000, 10), await lease_cost(bench, 10**6, 1000, 1000)
    show("lease at 1,000 tenants over 10", many / few, "x", "<= 2.0")


async def singles(bench: Bench) -> None:
    """Jobs of one row each."""
    await bench.empty()
    rows, seconds = await bench.cost(lambda: fill(bench, 5000, 1))
    ratio = rows / seconds / bench.yardstick
    show("single jobs: enqueue", ratio, "x EVALSHA", ">= 0.12")
    leases: list[Lease] = []
    rows, seconds = await bench.cost(lambda: take(bench, leases))
    ratio = rows / seconds / bench.yardstick
    show("single jobs: lease", ratio, "x EVALSHA", ">= 0.10")
    rows, seconds = await bench.cost(lambda: settle(bench, leases))
    ratio = rows / seconds / bench.yardstick
    show("single jobs: commit", ratio, "x EVALSHA", ">= 0.05")


async def run(url: str) -> None:
    """Everything, in order."""
    client = connect(url)
    bench = Bench(client)
    started = time.perf_counter()
    await yardstick(bench)
    for part in (segments, depth, singles):
        await part(bench)
    print(f"{time.perf_counter() - started:.0f} s")  # noqa: T201
    await client.aclose()


def main() -> None:
    """Start a server in a directory that is thrown away, measure, stop it."""
    with tempfile.TemporaryDirectory() as directory:
        server = EmbeddedServer(Path(directory), Settings(data_dir=Path(directory)))
        url = server.start()
        try:
            asyncio.run(run(url))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
