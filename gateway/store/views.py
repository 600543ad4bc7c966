"""What the queue knows, read and never changed."""

from collections.abc import Sequence
from typing import Any

from gateway.core.usage import Usage
from gateway.core.work import DeadRow, SegmentStatus, SegmentView
from gateway.store.client import StoreClient
from gateway.store.keys import SHARDS, shard_key
from gateway.store.scripts import run_script

_FIELDS = (
    "job",
    "tenant",
    "model",
    "status",
    "n",
    "ok",
    "bad",
    "leased",
    "prompt",
    "completion",
    "cached",
    "reasoning",
    "deadline",
    "closing",
)
_REF_BYTES = 16
_METERED = ("requests", "failed", "prompt", "completion", "cached", "reasoning")


class QueueViews:
    """The reading half of the queue client."""

    def __init__(self, redis: StoreClient) -> None:
        self._redis = redis

    async def shards(self) -> list[str]:
        """Every shard that ever held a segment."""
        names = await self._redis.execute_command("SMEMBERS", SHARDS)
        return sorted(name.decode() for name in names)

    async def tenants_of(self, shard: str) -> list[str]:
        """Every tenant that ever had a segment in ``shard``."""
        names = await self._redis.execute_command("SMEMBERS", shard_key(shard, "tenants"))
        return sorted(name.decode() for name in names)

    async def segment(self, shard: str, segment: str) -> SegmentView | None:
        """A segment as it stands; None when there is none."""
        key = shard_key(shard, f"s:{segment}")
        values = await self._redis.execute_command("HMGET", key, *_FIELDS)
        if values[0] is None:
            return None
        text = {name: (v or b"").decode() for name, v in zip(_FIELDS, values, strict=True)}
        figure = {name: int(text[name] or 0) for name in _FIELDS[4:13]}
        return SegmentView(
            segment=segment,
            job=text["job"],
            tenant=text["tenant"],
            model=text["model"],
            status=SegmentStatus(text["status"]),
            n=figure["n"],
            ok=figure["ok"],
            bad=figure["bad"],
            leased=figure["leased"],
            usage=Usage(
                figure["prompt"], figure["completion"], figure["cached"], figure["reasoning"]
            ),
            deadline_ms=figure["deadline"],
            closing=SegmentStatus(text["closing"] or text["status"]),
        )

    async def refs(self, shard: str, segment: str) -> tuple[bytes, bytes]:
        """Done bits (first row is the highest bit) and 16-byte references; short when unused."""
        done = await self._redis.execute_command("GET", shard_key(shard, f"d:{segment}"))
        refs = await self._redis.execute_command("GET", shard_key(shard, f"f:{segment}"))
        return done or b"", refs or b""

    async def done(self, shard: str, segment: str) -> bytes:
        """Bits of the rows that are done, first row highest; short when there are none behind."""
        bits = await self._redis.execute_command("GET", shard_key(shard, f"d:{segment}"))
        return bits or b""

    async def refs_of(self, shard: str, segment: str, rows: Sequence[int]) -> bytes:
        """16-byte references of ascending ``rows``; shorter when the segment was freed."""
        key = shard_key(shard, f"f:{segment}")
        first = rows[0]
        packed = await self._redis.execute_command(
            "GETRANGE", key, first * _REF_BYTES, (rows[-1] + 1) * _REF_BYTES - 1
        )
        places = ((row - first) * _REF_BYTES for row in rows)
        return b"".join(packed[at : at + _REF_BYTES] for at in places)

    async def good(self, shard: str, segment: str) -> bytes:
        """Bits of the rows that are done and good, in the order of ``refs``."""
        bits = await self._redis.execute_command("GET", shard_key(shard, f"g:{segment}"))
        return bits or b""

    async def dead(self, shard: str, most: int) -> list[DeadRow]:
        """Rows that were given up, that nobody holds, and that still need their error line."""
        found: list[DeadRow] = []
        for name in await self._redis.execute_command("SMEMBERS", shard_key(shard, "dead")):
            segment = name.decode()
            key = shard_key(shard, f"x:{segment}")
            rows = await self._redis.execute_command("ZRANGE", key, 0, most - len(found) - 1)
            if rows:
                why = await self._redis.execute_command(
                    "HMGET", shard_key(shard, f"y:{segment}"), *rows
                )
                pairs = zip(rows, why, strict=True)
                found += [_dead(segment, row, reason) for row, reason in pairs if reason]
            if len(found) >= most:
                break
        return found

    async def given_up(self, shard: str, most: int) -> list[tuple[int, DeadRow]]:
        """The last 1,000 rows that were given up, newest first, each with its Unix ms."""
        texts = await self._redis.execute_command("LRANGE", shard_key(shard, "dl"), 0, most - 1)
        found = []
        for text in texts:
            at, segment, row, reason = text.split(b" ", 3)
            found.append((int(at), _dead(segment.decode(), row, reason)))
        return found

    async def meter(
        self, shard: str, tenant: str, hours: Sequence[str]
    ) -> dict[str, dict[str, int]]:
        """What was delivered in ``hours``: model -> figure -> sum.

        Figures are requests, failed, prompt, completion, cached, reasoning.
        """
        totals: dict[str, dict[str, int]] = {}
        for hour in hours:
            key = shard_key(shard, f"m:{tenant}:{hour}")
            flat = await self._redis.execute_command("HGETALL", key)
            for name, value in flat.items():
                model, _, figure = name.decode().rpartition("|")
                sums = totals.setdefault(model, dict.fromkeys(_METERED, 0))
                sums[figure] += int(value)
        return totals

    async def stats(self, shard: str) -> dict[str, int]:
        """Counters of the shard: segments, rows_waiting, rows_leased, leases and more."""
        flat: list[Any] = await run_script(self._redis, "stats", shard)
        return {flat[i].decode(): int(flat[i + 1]) for i in range(0, len(flat), 2)}

    async def audit(self, shard: str) -> list[str]:
        """One sentence per invariant that does not hold; empty when all is well."""
        return [text.decode() for text in await run_script(self._redis, "audit", shard)]


def _dead(segment: str, row: bytes, why: bytes) -> DeadRow:
    reason, _, code = why.decode().partition(" ")
    return DeadRow(segment, int(row), reason, code)
