"""Segments and outcomes for queue tests."""

import struct
from collections.abc import Iterable

from gateway.core.usage import Usage
from gateway.core.work import Lease, PartRef, RowOutcome, SegmentSpec

SHARD = "m.0"
HOUR = "2026113006"


def segment(
    name: str,
    rows: int,
    *,
    tenant: str = "t",
    weight: float = 1.0,
    tokens: int | Iterable[int] = 100,
    window_ms: int = 3_600_000,
    delay_ms: int = 0,
) -> SegmentSpec:
    """A segment of ``rows`` rows for model ``m``."""
    costs = [tokens] * rows if isinstance(tokens, int) else list(tokens)
    return SegmentSpec(
        segment=name,
        job=name.partition(".")[0],
        tenant=tenant,
        model="m",
        tokens=struct.pack(f"<{rows}I", *costs),
        window_ms=window_ms,
        input_ref="files/in/data",
        index_ref="jobs/j/index-0",
        endpoint="/v1/chat/completions",
        weight=weight,
        delay_ms=delay_ms,
    )


def outcome(index: int, *, ok: bool = True) -> RowOutcome:
    """A result whose tokens can be told from its row."""
    return RowOutcome(index, PartRef(1, index * 10, 10), Usage(index + 1, 2 * index + 1, 1, 1), ok)


def held(lease: Lease) -> list[tuple[str, int]]:
    """The (segment, row) pairs of a lease."""
    return [(run.segment, row.index) for run in lease.runs for row in run.rows]
