"""What the demo must show. It succeeds only when every one of these holds."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.core.usage import Usage

if TYPE_CHECKING:  # the demo alone needs it, and what it imports
    from gateway.bench.measured import Measured

MIN_SPEEDUP = 3.0
MIN_OCCUPANCY = 48.0
MAX_TTFT_RATIO = 3.0
MIN_NAIVE_RATIO = 3.0


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, what was found, and whether that keeps it."""

    promise: str
    found: str
    ok: bool


def check_all(measured: "Measured") -> list[Check]:
    """Every promise, in the order of the table."""
    return [
        *_speed(measured),
        *_latency(measured),
        *_sums(measured.metered, measured.answered),
    ]


def failed(checks: Iterable[Check]) -> list[Check]:
    """Those that do not hold."""
    return [check for check in checks if not check.ok]


def _speed(measured: "Measured") -> list[Check]:
    speedup = measured.batch.tokens_per_second / measured.single_speed
    batches = (measured.batch, measured.shared_batch)
    sent, answered = sum(b.rows for b in batches), sum(b.answers for b in batches)
    return [
        Check(
            f"batch ≥ {MIN_SPEEDUP:g} x batch size 1",
            f"{speedup:.1f} x",
            speedup >= MIN_SPEEDUP,
        ),
        Check(
            f"batch occupancy ≥ {MIN_OCCUPANCY:g} rows over the middle half",
            f"{measured.batch_rows:.0f} rows",
            measured.batch_rows >= MIN_OCCUPANCY,
        ),
        Check(
            "every custom_id answered exactly once, at full length",
            f"{answered} of {sent}",
            answered == sent,
        ),
    ]


def _latency(measured: "Measured") -> list[Check]:
    alone, naive, shared = (
        latency.ttft for latency in (measured.alone, measured.naive, measured.shared)
    )
    p50, p99 = shared.p50 / alone.p50, naive.p99 / shared.p99
    return [
        Check(
            f"TTFT p50 beside a batch ≤ {MAX_TTFT_RATIO:g} x alone",
            f"{p50:.1f} x",
            p50 <= MAX_TTFT_RATIO,
        ),
        Check(
            f"TTFT p99 ≥ {MIN_NAIVE_RATIO:g} x better than naive",
            f"{p99:.1f} x",
            p99 >= MIN_NAIVE_RATIO,
        ),
    ]


def _sums(metered: dict[str, Usage], answered: dict[str, Usage]) -> list[Check]:
    return [
        Check(
            f"metered tokens = usage in the answers, {lane}",
            f"{_pair(metered.get(lane, Usage()))} = {_pair(usage)}",
            _pair(metered.get(lane, Usage())) == _pair(usage),
        )
        for lane, usage in answered.items()
    ]


def _pair(usage: Usage) -> str:
    return f"{usage.prompt:,} in, {usage.completion:,} out"
