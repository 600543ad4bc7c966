"""What becomes of leased rows: committed, given back, taken back, cancelled, finished."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.clock import since_boot
from gateway.core.usage import MOST_TOKENS, Usage
from gateway.core.work import (
    Committed,
    FinishClaim,
    Nacked,
    PartRef,
    RowFailure,
    RowOutcome,
    RunOutcomes,
    SegmentStatus,
)
from gateway.store.client import StoreClient
from gateway.store.keys import shard_key
from gateway.store.scripts import run_script

_MOST_ROWS = 512
_MOST_RUNS = 32
_KEPT_SECONDS = 30 * 86_400
_REF = struct.Struct("<IQI")
_CLOCK_AHEAD_MS = 300_000


@dataclass(frozen=True, slots=True)
class RetryRule:
    """Tries of a row. Delays are drawn below a bound that doubles from ``base_ms`` to ``cap_ms``.

    A row is given up after ``max_tries`` failed tries, or after ``max_crashes`` crashed deliveries
    of which the last two had it alone.
    """

    max_tries: int = 5
    base_ms: int = 1000
    cap_ms: int = 60_000
    max_crashes: int = 3


@dataclass(frozen=True, slots=True)
class Reaped:
    """Leases that ran out, how many rows wait again, and rows whose deliveries are used up."""

    leases: int
    returned: int
    dead: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Ticked:
    """Segments whose retries became due, and segments whose deadline passed.

    ``jump_ms`` is not 0 when the server's clock leapt forward: nothing expires until that is
    confirmed.
    """

    promoted: int
    expired: int
    jump_ms: int


class QueueSettlement:
    """The settling half of the queue client. ``seconds`` go on whatever the server's clock does."""

    def __init__(self, redis: StoreClient, seconds: Callable[[], float] = since_boot) -> None:
        self._redis = redis
        self._seconds = seconds
        self._ticks: dict[str, tuple[int, float]] = {}

    async def _run(self, name: str, shard: str, *args: str | int | bytes) -> Any:
        return await run_script(self._redis, name, shard, *args)

    async def commit(
        self, shard: str, lease_id: str, segment: str, outcomes: Sequence[RowOutcome], hour: str
    ) -> Committed:
        """Record results and meter them under ``hour``. The first commit of a row wins.

        ``lease_id`` may be empty or gone: a late result counts as long as the row is not done.
        More than 512 outcomes travel in several steps, each safe by itself.
        """
        parts = [outcomes[at : at + _MOST_ROWS] for at in range(0, len(outcomes), _MOST_ROWS)]
        runs = [RunOutcomes(lease_id, segment, part) for part in parts]
        done = await self.commit_all(shard, runs, hour)
        answers = [answer for answer in done if answer is not None]
        if len(answers) < len(done):
            raise ValueError(f"{segment} has no such row or is broken")
        return Committed(
            sum(answer.fresh for answer in answers),
            sum(answer.duplicate for answer in answers),
            sum(answer.closed for answer in answers),
        )

    async def commit_all(
        self, shard: str, runs: Sequence[RunOutcomes], hour: str
    ) -> list[Committed | None]:
        """As ``commit``, for runs of at most 512 rows each, in as few steps as may be.

        None stands for a run with a row that its segment does not have, or whose segment is broken.
        """
        done: list[Committed | None] = []
        for some in _portions(runs):
            values = [value for run in some for value in _run(run)]
            answer: Sequence[int] = await self._run("commit", shard, hour, *values)
            for fresh, duplicate, closed in zip(*[iter(answer)] * 3, strict=True):
                done.append(None if fresh < 0 else Committed(fresh, duplicate, closed))
        return done

    async def nack(
        self,
        shard: str,
        lease_id: str,
        segment: str,
        failures: Sequence[RowFailure],
        retry: RetryRule,
    ) -> Nacked:
        """Give failed rows back for another try, as far as they have one left."""
        rows = [
            v
            for f in failures
            for v in (f.index, int(f.kind), f.retry_after_ms, f.code, f.together)
        ]
        rule = (retry.max_tries, retry.base_ms, retry.cap_ms, retry.max_crashes)
        requeued, exhausted = await self._run("nack", shard, lease_id, segment, *rule, *rows)
        return Nacked(tuple(map(int, requeued)), tuple(map(int, exhausted)))

    async def release(
        self, shard: str, lease_id: str, rows: Mapping[str, Sequence[int]] | None = None
    ) -> int:
        """Give rows back untouched, or everything the lease holds. Returns how many wait again."""
        if rows is not None and not rows:
            return 0
        parts = [v for segment, left in (rows or {}).items() for v in (segment, _u32(left))]
        return int(await self._run("release", shard, lease_id, *parts))

    async def reap(self, shard: str, max_leases: int, retry: RetryRule) -> Reaped:
        """Take back what at most ``max_leases`` expired leases held."""
        rule = (retry.max_crashes, retry.max_tries)
        leases, returned, dead = await self._run("reap", shard, max_leases, *rule)
        pairs = zip(dead[::2], dead[1::2], strict=True)
        return Reaped(leases, returned, tuple((seg.decode(), int(row)) for seg, row in pairs))

    async def tick(self, shard: str, most: int, *, grace_ms: int = 3000) -> Ticked:
        """Promote due retries, expire what is past its deadline, close what is past its grace."""
        now, expected = self._seconds(), 0
        if shard in self._ticks:
            at_ms, at = self._ticks[shard]
            expected = at_ms + int(1000 * (now - at))
        limits = (grace_ms, expected, _CLOCK_AHEAD_MS)
        promoted, expired, server_ms, jump_ms = await self._run("tick", shard, most, *limits)
        self._ticks[shard] = (server_ms, now)
        return Ticked(promoted, expired, jump_ms)

    async def cancel(
        self, shard: str, segment: str, grace_ms: int
    ) -> tuple[SegmentStatus, SegmentStatus] | None:
        """Stop a segment; its state before and after. None when there is no such segment."""
        states = await self._run("cancel", shard, segment, grace_ms)
        if not states:
            return None
        before, after = (SegmentStatus(state.decode()) for state in states)
        return before, after

    async def finish_claim(self, shard: str, owner: str, ttl_ms: int) -> FinishClaim | None:
        """Claim a segment whose final files are to be written, for ``ttl_ms``."""
        claim = await self._run("finish_claim", shard, owner, ttl_ms)
        if not claim:
            return None
        segment, job, tenant, fence, closing, ok, bad, caught, *tokens, ref = claim
        return FinishClaim(
            segment.decode(),
            job.decode(),
            tenant.decode(),
            int(fence),
            SegmentStatus(closing.decode()),
            ok,
            bad,
            Usage(*tokens),
            PartRef(*_REF.unpack(ref)) if ref else None,
            caught,
        )

    async def finish_commit(
        self, shard: str, segment: str, fence: int, keep_seconds: int = _KEPT_SECONDS
    ) -> bool:
        """Make a segment terminal and free its rows. False when a newer fence was given out.

        Its record stays for ``keep_seconds``; until then it cannot be added again.
        """
        return bool(await self._run("finish_commit", shard, segment, fence, keep_seconds))

    async def forget(self, shard: str, segment: str, seconds: int) -> None:
        """Keep a terminal segment for ``seconds`` more; until then it cannot be added again."""
        await self._redis.execute_command("EXPIRE", shard_key(shard, f"s:{segment}"), seconds)


def _portions(runs: Sequence[RunOutcomes]) -> list[list[RunOutcomes]]:
    """Runs that go in one step: what a script takes without keeping others waiting."""
    portions: list[list[RunOutcomes]] = []
    rows = _MOST_ROWS
    for run in runs:
        rows += len(run.rows)
        if rows > _MOST_ROWS or len(portions[-1]) == _MOST_RUNS:
            portions.append([])
            rows = len(run.rows)
        portions[-1].append(run)
    return portions


def _run(run: RunOutcomes) -> Sequence[str | bytes]:
    rows = run.rows
    return (
        run.lease,
        run.segment,
        _u32([row.index for row in rows]),
        b"".join([_ref(row) for row in rows]),
        b"".join([_usage(row.usage) for row in rows]),
        "".join(["1" if row.ok else "0" for row in rows]),
    )


def _u32(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def _ref(outcome: RowOutcome) -> bytes:
    ref = outcome.ref
    return _REF.pack(ref.part, ref.offset, ref.length)


def _usage(usage: Usage) -> bytes:
    counts = (usage.prompt, usage.completion, usage.cached, usage.reasoning)
    return struct.pack("<4I", *(min(count, MOST_TOKENS) for count in counts))
