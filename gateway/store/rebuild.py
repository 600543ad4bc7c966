"""The queue after a loss: segments made again from what the disk holds, meter included.

Both operations are one script each and change nothing when they are repeated, so whoever finds a
loss may repair it, also several at once, also again after the next loss.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.core.usage import Usage
from gateway.core.work import RowOutcome, SegmentSpec, SegmentStatus
from gateway.store.control import QueueControl
from gateway.store.scripts import run_script

METERED = ("requests", "failed", "prompt", "completion", "cached", "reasoning")
HourSums = dict[str, dict[str, int]]
"""Hour -> figure of METERED -> sum."""


@dataclass(frozen=True, slots=True)
class EndedSegment:
    """A segment of a batch whose final state is on disk. ``hours`` is all that it is billed."""

    segment: str
    job: str
    tenant: str
    model: str
    rows: int
    ok: int
    bad: int
    closing: SegmentStatus
    usage: Usage
    hours: Mapping[str, Mapping[str, int]]


class QueueRebuild(QueueControl):
    """The rebuilding part of the queue client."""

    async def rebuild(
        self, shard: str, spec: SegmentSpec, done: Mapping[str, Sequence[RowOutcome]]
    ) -> bool:
        """Add a segment whose rows in ``done`` (by hour of the bill) have their result already.

        Rows of the segment that are not among them wait again. False when the segment is there.
        """
        await self._prepare(shard)
        rows = {outcome.index: outcome for some in done.values() for outcome in some}
        cursor = max(rows, default=-1) + 1
        missing = [index for index in range(cursor) if index not in rows]
        refs = bytearray(16 * cursor)
        for index, outcome in rows.items():
            ref = outcome.ref
            struct.pack_into("<IQI", refs, 16 * index, ref.part, ref.offset, ref.length)
        usage = sum((outcome.usage for outcome in rows.values()), Usage())
        good = [outcome.index for outcome in rows.values() if outcome.ok]
        tokens = struct.unpack(f"<{spec.rows}I", spec.tokens)
        answer = await run_script(
            self._redis,
            "rebuild",
            shard,
            *spec_arguments(spec),
            cursor,
            struct.pack(f"<{len(missing)}I", *missing),
            _bits(rows, cursor),
            _bits(good, cursor),
            bytes(refs),
            len(good),
            len(rows) - len(good),
            *_tokens(usage),
            sum(tokens[index] for index in rows),
            int(spec.held),
            *_hours(_sums(done)),
        )
        return bool(answer)

    async def settle_ended(self, shard: str, ended: EndedSegment) -> bool:
        """Make a segment terminal and its meter what ``ended`` says. False: it is so already."""
        await self._prepare(shard)
        answer = await run_script(
            self._redis,
            "settle_ended",
            shard,
            ended.segment,
            ended.job,
            ended.tenant,
            ended.model,
            ended.rows,
            ended.ok,
            ended.bad,
            str(ended.closing),
            *_tokens(ended.usage),
            *_hours(ended.hours),
        )
        return bool(answer)

    async def _prepare(self, shard: str) -> None:
        if await self.list_shard(shard):
            await self.pause_standing(shard)


def spec_arguments(spec: SegmentSpec) -> tuple[str | int | bytes, ...]:
    """What ``add_segment`` of the scripts reads."""
    total = sum(struct.unpack(f"<{spec.rows}I", spec.tokens))
    return (
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
    )


def count_row(hours: HourSums, hour: str, usage: Usage, *, ok: bool) -> None:
    """Add one delivered row to ``hours``."""
    sums = hours.setdefault(hour, dict.fromkeys(METERED, 0))
    tokens = (usage.prompt, usage.completion, usage.cached, usage.reasoning)
    for figure, amount in zip(METERED, (1, int(not ok), *tokens), strict=True):
        sums[figure] += amount


def _sums(done: Mapping[str, Sequence[RowOutcome]]) -> HourSums:
    hours: HourSums = {}
    for hour, outcomes in done.items():
        for outcome in outcomes:
            count_row(hours, hour, outcome.usage, ok=outcome.ok)
    return hours


def _hours(hours: Mapping[str, Mapping[str, int]]) -> list[str | int]:
    values: list[str | int] = []
    for hour, sums in hours.items():
        values += [hour, *(sums.get(figure, 0) for figure in METERED)]
    return values


def _tokens(usage: Usage) -> tuple[int, int, int, int]:
    return usage.prompt, usage.completion, usage.cached, usage.reasoning


def _bits(indices: Iterable[int], rows: int) -> bytes:
    """A bitmap, first row in the highest bit."""
    bits = bytearray(-(-rows // 8))
    for index in indices:
        bits[index >> 3] |= 0x80 >> (index & 7)
    return bytes(bits)
