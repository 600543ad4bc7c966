"""An engine with people and rows on it."""

import math

from gateway.bench.coserve.host import EngineHost
from gateway.bench.coserve.lane import OfflineLane
from gateway.bench.coserve.record import CallRecord, Record
from gateway.bench.coserve.rows import Backlog, Row
from gateway.bench.coserve.virtual import VirtualClock
from gateway.pacing.shared import Waiting
from gateway.pacing.window import FixedWindow
from gateway.simulator.engine import Engine
from gateway.simulator.profile import PROFILES


def _host() -> tuple[EngineHost, Record]:
    record = Record()
    return EngineHost(Engine(PROFILES["a100-8b"]), record), record


def _play(host: EngineHost) -> float:
    now = 0.0
    while host.due < math.inf:
        now = host.due
        host.finish_step(now)
        host.begin_step(now)
    return now


def test_calls_and_rows_are_counted_apart() -> None:
    """Tokens of both add up to what the engine said."""
    host, record = _host()
    call = CallRecord(0.0, 600, 20)
    host.take_call(call, 0.0)
    host.start(Row(700, 30))
    assert host.load.calls == 1
    end = _play(host)
    assert (call.tokens, call.ended, call.last <= end) == (20, True, True)
    assert (record.prompt_tokens, record.output_tokens, record.rows) == (700, 30, 1)
    assert (host.load.calls, host.load.prefilling) == (0, 0)
    assert len(record.gaps) == 19
    assert host.load.ended == [call]


def test_a_row_that_is_taken_back_leaves_nothing() -> None:
    """Also in the middle of the step that reads its prompt."""
    host, record = _host()
    row = Row(400, 5)
    host.start(row)
    host.begin_step(0.0)
    host.stop(row)
    _play(host)
    assert (record.prompt_tokens, record.rows) == (0, 0)
    assert host.engine.idle


def test_a_restart_fails_calls_and_sends_rows_again() -> None:
    """Nothing offline is lost."""
    host, record = _host()
    clock = VirtualClock()
    host.lane = OfflineLane(Backlog([(100, 5)] * 4), FixedWindow(4), host, clock)
    host.lane.start_ready()
    talking, asking = CallRecord(0.0, 100, 50), CallRecord(0.0, 100, 50)
    host.take_call(talking, 0.0)
    for _ in range(3):
        host.finish_step(host.due)
        host.begin_step(0.0)
    host.take_call(asking, 0.0)
    host.restart()
    assert (talking.failed, asking.failed) == (True, True)
    assert host.load.calls == 0
    assert host.engine.idle
    host.lane.start_ready()
    host.begin_step(0.0)
    _play(host)
    assert record.rows == 4
    host.load.say()
    assert host.load.waiting == Waiting(0, 0)


def test_steps_are_sampled() -> None:
    """Means of about half a second, for a fit."""
    host, record = _host()
    host.start(Row(1000, 400))
    host.begin_step(0.0)
    _play(host)
    assert len(record.samples) > 5
    assert record.samples[-1].rows == 1
    assert record.samples[-1].kv > 1000
