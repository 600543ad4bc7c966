"""The queue's client: leasing work and what keeps the schedule. Settling is in ``settle``."""

import struct
from collections.abc import Sequence

from gateway.core.work import Extended, Lease, LeasedRow, LeasedRun, SegmentSpec
from gateway.store.client import StoreClient
from gateway.store.keys import SHARDS, shard_key
from gateway.store.settle import QueueSettlement, RetryRule
from gateway.store.views import QueueViews

__all__ = ["QueueClient", "RetryRule"]

_RUN_VALUES = 11
# Shorter than the client's time limit for any command.
_LONGEST_WAIT = 3.0


class QueueClient(QueueSettlement, QueueViews):
    """All operations of the queue. Every method is one script or one read, and may be repeated.

    Raises StoreUnavailable when the server does not answer, StoreFull when it is out of memory.
    """

    def __init__(self, redis: StoreClient) -> None:
        super().__init__(redis)
        self._listed: set[str] = set()

    async def enqueue(self, shard: str, spec: SegmentSpec) -> bool:
        """Add a segment. True when it is new, False when it was there.

        A shard is listed before its first segment. A server that lost everything refuses until
        that was done again.
        """
        added = await self._enqueue(shard, spec) if shard in self._listed else -1
        if added < 0:
            self._listed.discard(shard)
            await self._redis.execute_command("SADD", SHARDS, shard)
            added = await self._enqueue(shard, spec)
            self._listed.add(shard)
        return bool(added)

    async def _enqueue(self, shard: str, spec: SegmentSpec) -> int:
        total = sum(struct.unpack(f"<{spec.rows}I", spec.tokens))
        answer = await self._run(
            "enqueue",
            shard,
            spec.segment,
            spec.job,
            spec.tenant,
            spec.model,
            spec.endpoint,
            repr(float(spec.weight)),
            spec.window_ms,
            spec.priority,
            spec.input_ref,
            spec.index_ref,
            total,
            spec.tokens,
            int(shard in self._listed),
            spec.delay_ms,
        )
        return int(answer)

    async def lease(
        self,
        shard: str,
        worker: str,
        max_rows: int,
        max_tokens: int,
        ttl_ms: int,
        *,
        quantum: int = 16,
        rate: float = 0.0,
        slack_ms: int = 0,
    ) -> Lease | None:
        """Take at most ``max_rows`` rows of at most ``max_tokens``; None when nothing is ready.

        A segment goes first, out of turn, when less than ``slack_ms`` would be left to its deadline
        after its remaining tokens at ``rate`` a second (0: unknown, they count as nothing).
        1,024 rows are the most that one lease holds.
        At least one row is given even when it is over the token budget.
        """
        limits = (max_rows, max_tokens, ttl_ms, quantum, f"{rate:.3f}", slack_ms)
        values = await self._run("lease", shard, worker, *limits)
        if not values:
            return None
        runs = [_run_of(values[at : at + _RUN_VALUES]) for at in range(1, len(values), _RUN_VALUES)]
        return Lease(values[0].decode(), shard, ttl_ms, tuple(runs))

    async def extend(
        self, shard: str, worker: str, ttl_ms: int, lease_ids: Sequence[str]
    ) -> Extended:
        """Keep leases for another ``ttl_ms``."""
        alive, gone, stopped = await self._run("extend", shard, worker, ttl_ms, *lease_ids)
        left = dict(zip(alive[::2], alive[1::2], strict=True))
        return Extended(
            {lease.decode(): int(ms) for lease, ms in left.items()},
            tuple(lease.decode() for lease in gone),
            tuple(segment.decode() for segment in stopped),
        )

    async def wait(self, shards: Sequence[str], timeout_s: float) -> None:
        """Return when work may be ready in one of ``shards``, or after ``timeout_s``, 3 at most."""
        keys = [shard_key(shard, "wake") for shard in shards]
        seconds = min(timeout_s, _LONGEST_WAIT)
        await self._redis.execute_command("BLPOP", *keys, f"{seconds:.3f}")


def _run_of(values: Sequence[bytes | int]) -> LeasedRun:
    texts = [v.decode() if isinstance(v, bytes) else str(v) for v in values]
    segment, job, tenant, model, endpoint, input_ref, index_ref, deadline, start, end, again = texts
    retried = [LeasedRow(*map(int, item.split(":"))) for item in again.split(",") if item]
    fresh = [LeasedRow(index) for index in range(int(start), int(end))]
    return LeasedRun(
        segment,
        job,
        tenant,
        model,
        endpoint,
        input_ref,
        index_ref,
        int(deadline),
        (*retried, *fresh),
    )
