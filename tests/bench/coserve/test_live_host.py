"""Calls and rows over HTTP."""

import asyncio

import aiohttp

from gateway.bench.coserve.lane import OfflineLane
from gateway.bench.coserve.live import RunClock
from gateway.bench.coserve.live_host import Address, LiveHost
from gateway.bench.coserve.record import CallRecord, Record
from gateway.bench.coserve.rows import Backlog
from gateway.pacing.window import FixedWindow
from tests.support.batch_plane import eventually
from tests.support.simulated import MODEL, engine_process


async def test_calls_and_rows_run_and_are_timed() -> None:
    """Both lanes of a simulated engine; a row that is taken back is gone there, too."""
    async with (
        engine_process("--profile", "h200-8b", "--model", MODEL, "--scale", "2") as (url, _),
        aiohttp.ClientSession() as session,
    ):
        record, clock = Record(), RunClock()
        host = LiveHost(session, Address(f"{url}/v1", MODEL, priority=True), record, clock)
        lane = OfflineLane(Backlog([(100, 9)] * 3), FixedWindow(2), host, clock)
        host.lane = lane
        call = CallRecord(clock.monotonic(), 50, 7)
        host.take_call(call)
        lane.start_ready()

        async def done() -> bool:
            return call.ended and record.rows == 3

        await eventually(done)
        assert call.tokens == 7
        assert 0 < call.ttft < 5
        assert record.output_tokens == 27
        assert (host.load.calls, host.load.prefilling) == (0, 0)
        await host.close()


async def test_a_server_that_fails_is_counted() -> None:
    """The call failed, the row is not done."""
    async with aiohttp.ClientSession() as session:
        record, clock = Record(), RunClock()
        host = LiveHost(session, Address("http://127.0.0.1:9/v1", MODEL), record, clock)
        call = CallRecord(0.0, 5, 5)
        host.take_call(call)
        host.lane = OfflineLane(Backlog([(5, 5)]), FixedWindow(1), host, clock)
        host.lane.start_ready()
        async with asyncio.timeout(5):
            while not (call.failed and host.failures):  # noqa: ASYNC110 - no event there
                await asyncio.sleep(0.01)
        assert host.failures == 1
        assert record.rows == 0
        await host.close()
