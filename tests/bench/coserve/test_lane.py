"""The lane does what the pacer says."""

from dataclasses import dataclass, field

import pytest

from gateway.bench.coserve.lane import OfflineLane
from gateway.bench.coserve.rows import Backlog, Row
from gateway.bench.coserve.virtual import VirtualClock
from gateway.pacing.shared import Caps, SharedEngine, Waiting
from gateway.pacing.window import FixedWindow


@dataclass
class _Port:
    started: list[Row] = field(default_factory=list)
    stopped: list[Row] = field(default_factory=list)

    def start(self, row: Row) -> None:
        self.started.append(row)

    def stop(self, row: Row) -> None:
        self.stopped.append(row)


def _rows(count: int) -> Backlog:
    return Backlog([(100, 10)] * count)


def test_a_window_is_kept_full() -> None:
    """A row that ends lets the next one start; an empty backlog ends it."""
    port = _Port()
    lane = OfflineLane(_rows(5), FixedWindow(3), port, VirtualClock())
    lane.start_ready()
    assert len(port.started) == 3
    lane.first_token(port.started[0])
    assert len(lane.prefilling) == 2
    for row in list(port.started):
        lane.ended(row)
    lane.start_ready()
    assert len(port.started) == 5
    assert not port.stopped


def test_the_pacer_hears_of_gaps() -> None:
    """Of a row of ten tokens nine, of one token none."""
    told: list[float | None] = []
    port, clock = _Port(), VirtualClock()
    pacer = FixedWindow(2)
    pacer.ended = lambda seconds, gap: told.append(gap)  # type: ignore[method-assign]
    lane = OfflineLane(Backlog([(100, 10), (100, 1)]), pacer, port, clock)
    lane.start_ready()
    for row in port.started:
        lane.first_token(row)
    clock.time += 1.8
    for row in list(port.started):
        lane.ended(row)
    assert told == [pytest.approx(0.2), None]


def test_while_people_wait_one_prompt_at_a_time() -> None:
    """The dispatcher's own pacer decides; an arrival takes back what has just begun."""
    port, clock = _Port(), VirtualClock()
    waiting = [Waiting(0, 0)]
    lane = OfflineLane(_rows(50), SharedEngine(Caps(), lambda: waiting[0], clock), port, clock)
    lane.start_ready()
    assert len(lane.prefilling) > 1
    waiting[0] = Waiting(1, 1)
    lane.make_way()
    assert len(lane.prefilling) == 1
    assert lane.taken_back == len(port.stopped) > 0
    lane.first_token(port.started[0])
    lane.start_ready()
    assert not lane.prefilling
    waiting[0] = Waiting(1, 0)
    lane.start_ready()
    assert len(lane.prefilling) == 1
    assert port.started[-1].taken_back == 1


def test_a_row_is_taken_back_six_times_at_most() -> None:
    """So that it comes to its end whatever else comes."""
    port, clock = _Port(), VirtualClock()
    caps = Caps(prefill_busy=0)
    lane = OfflineLane(_rows(1), SharedEngine(caps, lambda: Waiting(0, 0), clock), port, clock)
    for _ in range(9):
        lane.start_ready()
        lane.make_way()
    assert len(port.stopped) == 6
    assert len(lane.running) == 1


def test_lost_rows_are_sent_again_first() -> None:
    """A restart of the engine counts as nobody's try."""
    port = _Port()
    lane = OfflineLane(_rows(9), FixedWindow(2), port, VirtualClock())
    lane.start_ready()
    lost = list(port.started)
    lane.lost(lost)
    lane.start_ready()
    assert port.started[2:] == lost
    assert not lost[0].taken_back
