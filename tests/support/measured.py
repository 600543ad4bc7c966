"""Figures of a demo that went well."""

from gateway.bench.batch_run import BatchResult
from gateway.bench.measured import Measured
from gateway.bench.naive import Flood
from gateway.bench.timing import Latency, Spread
from gateway.core.usage import Usage


def latency(p50: float, p99: float) -> Latency:
    """Some calls' latency with this spread of first tokens."""
    return Latency(Spread(p50, p99, 20), Spread(0.01, 0.02, 500))


def result(answers: int = 96) -> BatchResult:
    """A batch at 64 output tokens per second."""
    return BatchResult("batch_1", 96, answers, 0.0, 50.0, Usage(100, 3200), "text")


def good() -> Measured:
    """Every figure on the right side of its limit."""
    return Measured(
        alone=latency(0.1, 0.2),
        naive=latency(5.0, 8.0),
        shared=latency(0.2, 0.5),
        single_speed=20.0,
        batch=result(),
        shared_batch=result(),
        flood=Flood(Usage(100, 3200), 0.0, 50.0),
        batch_rows=60.0,
        shared_rows=58.0,
        flood_rows=64.0,
        metered={"interactive": Usage(10, 20), "batch": Usage(200, 6400)},
        answered={"interactive": Usage(10, 20), "batch": Usage(200, 6400)},
    )
