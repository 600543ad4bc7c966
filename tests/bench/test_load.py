"""Load on any server."""

import io

from rich.console import Console

from gateway.bench.load import Load, run_load, show_load
from tests.support.answers import Pace
from tests.support.scripts import error
from tests.support.upstream import ScriptedUpstream


async def test_closed_loop_keeps_its_concurrency(upstream: ScriptedUpstream) -> None:
    """Never more calls at once than asked for, all of them made."""
    upstream.pace = Pace(first=0.02)
    report = await run_load(Load(upstream.url, "m", "k", 12, 3, None, 4))
    assert len(report.timings) == 12
    assert upstream.peak == 3
    assert not report.failures


async def test_open_loop_keeps_its_rate(upstream: ScriptedUpstream) -> None:
    """Calls start at the rate whatever the answers do."""
    upstream.pace = Pace(first=0.3)
    report = await run_load(Load(upstream.url, "m", "k", 6, 1, 50.0, 2))
    assert upstream.peak >= 5
    assert report.tokens_per_second > 0


async def test_failures_are_counted_and_shown(upstream: ScriptedUpstream) -> None:
    """A failed call is no timing."""
    upstream.enqueue(error(503), error(400))
    report = await run_load(Load(upstream.url, "m", "k", 3, 1, None, 2))
    assert report.failures == {"InternalServerError": 1, "BadRequestError": 1}
    console = Console(file=io.StringIO(), width=120)
    show_load(console, report)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "1 failed: BadRequestError" in text
    assert "TTFT" in text
