"""The queue's client: leasing work and what keeps the schedule. Settling is in ``settle``."""

import secrets
from collections.abc import Callable, Sequence

from gateway.core.clock import since_boot
from gateway.core.errors import RateLimited
from gateway.core.work import Extended, Lease, LeasedRow, LeasedRun, Quota, SegmentSpec, Turns
from gateway.store.client import StoreClient
from gateway.store.control import QueueControl, Standing
from gateway.store.keys import shard_key
from gateway.store.outlook import QueueOutlook
from gateway.store.rebuild import QueueRebuild, spec_arguments
from gateway.store.settle import QueueSettlement, RetryRule
from gateway.store.views import QueueViews

__all__ = ["MOST_ENQUEUED", "QueueClient", "RetryRule"]

MOST_ENQUEUED = 64

_RUN_VALUES = 11
_LATE = b"late"
_MOST_EXPIRED = 64
_NEW_SHARD = -1
_OVER_ROWS = -2
_BROKEN = -4
_RETRY_AFTER = 60.0
_TURNS = Turns()
# Shorter than the client's time limit for any command.
_LONGEST_WAIT = 3.0


class QueueClient(QueueSettlement, QueueRebuild, QueueControl, QueueOutlook, QueueViews):
    """All operations of the queue. Every method is one script or one read, and may be repeated.

    Raises StoreUnavailable when the server does not answer, StoreFull when it is out of memory.
    ``standing`` are pauses that hold in every shard from its first segment on; who enqueues has it.
    """

    def __init__(
        self,
        redis: StoreClient,
        seconds: Callable[[], float] = since_boot,
        standing: Standing | None = None,
    ) -> None:
        super().__init__(redis, seconds)
        self._standing = standing
        self._listed: set[str] = set()

    async def enqueue(self, shard: str, spec: SegmentSpec, quota: Quota | None = None) -> bool:
        """Add a segment. True when it is new, False when it was there.

        A shard is listed, and paused if need be, before its first segment. A server that lost
        everything refuses until that was done again. Raises RateLimited when the tenant would have
        more than ``quota``.
        """
        [added] = await self.enqueue_all(shard, [(spec, quota or Quota())])
        if isinstance(added, Exception):
            raise added
        return added

    async def enqueue_all(
        self, shard: str, wanted: Sequence[tuple[SegmentSpec, Quota]]
    ) -> list[bool | RateLimited | ValueError]:
        """As ``enqueue``, for at most 64 segments in one step; each has an outcome of its own.

        ValueError stands for a segment whose tenant's keys are broken.
        """
        added = await self._enqueue(shard, wanted) if shard in self._listed else [_NEW_SHARD]
        if added[0] == _NEW_SHARD:
            self._listed.discard(shard)
            await self.list_shard(shard)
            await self.pause_standing(shard)
            added = await self._enqueue(shard, wanted)
            self._listed.add(shard)
        answers = zip(*[iter(added)] * 2, strict=True)
        return [_added(*item, *answer) for item, answer in zip(wanted, answers, strict=True)]

    async def start(self, shard: str, segment: str) -> bool:
        """Let a held segment run; one that runs is left alone. False when there is none."""
        return bool(await self._run("start", shard, segment))

    async def _enqueue(
        self, shard: str, wanted: Sequence[tuple[SegmentSpec, Quota]]
    ) -> Sequence[int]:
        values: list[str | int | bytes] = [int(shard in self._listed)]
        for spec, quota in wanted:
            values += spec_arguments(spec)
            values += (spec.delay_ms, quota.rows, quota.tokens, int(spec.held))
        answer: Sequence[int] = await self._run("enqueue", shard, *values)
        return answer

    async def lease(
        self,
        shard: str,
        worker: str,
        max_rows: int,
        max_tokens: int,
        ttl_ms: int,
        turns: Turns = _TURNS,
    ) -> Lease | None:
        """Take at most ``max_rows`` rows of at most ``max_tokens``; None when nothing is ready.

        1,024 rows are the most that one lease holds.
        At least one row is given even when it is over the token budget. What is past its deadline
        expires here, as in ``tick``: none of it is given.
        """
        limits = (max_rows, max_tokens, ttl_ms, turns.quantum, f"{turns.rate:.3f}", turns.slack_ms)
        while True:
            values = await self._run("lease", shard, worker, *limits, secrets.token_hex(8))
            if values != [_LATE]:
                break
            await self.tick(shard, _MOST_EXPIRED)
        if not values:
            return None
        lease_id, now_ms, *runs = values
        parts = (runs[at : at + _RUN_VALUES] for at in range(0, len(runs), _RUN_VALUES))
        return Lease(lease_id.decode(), shard, ttl_ms, tuple(map(_run_of, parts)), now_ms)

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


def _added(
    spec: SegmentSpec, quota: Quota, code: int, queued: int
) -> bool | RateLimited | ValueError:
    if code == _BROKEN:
        return ValueError(f"The keys of {spec.tenant} are broken")
    return bool(code) if code >= 0 else _over(quota, spec, code, queued)


def _over(quota: Quota, spec: SegmentSpec, refused: int, queued: int) -> RateLimited:
    """In OpenAI's words: the same code for tokens, and one like it for requests."""
    rows = refused == _OVER_ROWS
    what, limit = ("request", quota.rows) if rows else ("token", quota.tokens)
    return RateLimited(
        f"Enqueued {what} limit reached for {spec.model}. Limit: {limit:,} enqueued {what}s, "
        f"of which {queued:,} are in use. Please try again once some in_progress batches have "
        "been completed.",
        retry_after=_RETRY_AFTER,
        code=f"{what}_limit_exceeded",
    )


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
