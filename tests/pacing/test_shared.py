"""The prefill gate, and what bounds the rows in flight."""

from gateway.core.load import TargetLoad
from gateway.core.targets import EngineLoad
from gateway.pacing.shared import Caps, SharedEngine, Waiting
from tests.support.clock import ManualClock


class _Engine:
    """A pacer whose interactive load and clock the test moves."""

    def __init__(self, caps: Caps) -> None:
        self.waiting: Waiting | None = Waiting(0, 0)
        self.clock = ManualClock()
        self.late = False
        self.pacer = SharedEngine(caps, lambda: self.waiting, self.clock, lambda: self.late)

    def flight(self, gap: float, *, running: int | None = None) -> int:
        """One flight of 2 s with the cap used up and the gaps as told; the cap after it."""
        rows = self.pacer.window() if running is None else running
        for _ in range(4):
            self.clock.advance(0.5)
            self.pacer.places(rows, 0)
            self.pacer.heard(TargetLoad(itl_s=gap))
        return self.pacer.window()


def test_one_prompt_at_a_time_while_somebody_waits() -> None:
    """An interactive call closes the gate to one row; without one, several prefill at once."""
    engine = _Engine(Caps(start=64))
    assert engine.pacer.places(0, 0) == 8
    assert engine.pacer.places(10, 3) == 5
    engine.waiting = Waiting(3, 0)
    assert engine.pacer.places(10, 0) == 1
    assert engine.pacer.places(10, 1) == 0
    assert engine.pacer.places(10, 8) == 0


def test_silence_counts_as_somebody() -> None:
    """When nothing is known the gate is as narrow as for people, and never shut."""
    engine = _Engine(Caps(start=64))
    engine.waiting = None
    assert engine.pacer.places(10, 0) == 1
    assert engine.pacer.places(10, 1) == 0


def test_nothing_starts_while_somebody_waits_for_a_first_token() -> None:
    """After two seconds one row does, so that calls without a pause do not stop offline work."""
    engine = _Engine(Caps(start=64))
    engine.waiting = Waiting(2, 1)
    engine.pacer.started()
    assert engine.pacer.places(10, 0) == 0
    engine.clock.advance(2.1)
    assert engine.pacer.places(10, 0) == 1
    engine.pacer.started()
    assert engine.pacer.places(11, 0) == 0


def test_a_hold_is_as_long_as_ten_usual_waits() -> None:
    """Where first tokens come fast, many calls a second do not stop offline work."""
    engine = _Engine(Caps(start=64))
    engine.waiting = Waiting(2, 1)
    engine.pacer.heard(TargetLoad(2, 1, 0.1))
    engine.pacer.started()
    engine.clock.advance(0.95)
    assert engine.pacer.places(10, 0) == 0
    engine.clock.advance(0.1)
    assert engine.pacer.places(10, 0) == 1


def test_rows_that_have_just_begun_make_way() -> None:
    """So do those behind another one; a row that is most of the way through goes on."""
    engine = _Engine(Caps(start=64))
    assert engine.pacer.makes_way(0.0, 1000, 1)
    assert not engine.pacer.makes_way(0.0, 1000, 0)
    engine.pacer.first_token(0.3, 1000, 10)
    assert engine.pacer.makes_way(0.1, 1000, 0)
    assert not engine.pacer.makes_way(0.2, 1000, 0)
    assert engine.pacer.makes_way(0.2, 1000, 1)


def test_a_prompt_of_a_step_or_two_is_let_go_on() -> None:
    """It would be read before anybody could stop it; one behind another makes way all the same."""
    engine = _Engine(Caps(start=64))
    engine.pacer.first_token(0.1, 1000, 10)
    assert not engine.pacer.makes_way(0.0, 1000, 0)
    assert engine.pacer.makes_way(0.0, 3000, 0)
    assert engine.pacer.makes_way(0.0, 1000, 1)


def test_late_work_yields_less() -> None:
    """It does not wait for first tokens, is not taken back, and keeps its starting number."""
    engine = _Engine(Caps(start=32, floor=4))
    engine.waiting = Waiting(2, 1)
    engine.pacer.started()
    engine.pacer.first_token(0.2, 1000, 10)
    engine.late = True
    assert engine.pacer.places(10, 0) == 2
    assert not engine.pacer.makes_way(0.0, 1000, 1)
    assert [engine.flight(1.0) for _ in range(12)][-1] == 32


def test_short_prompts_fill_an_idle_engine_at_once() -> None:
    """Beyond the rows of the idle gate there is room while the prompts are short together."""
    engine = _Engine(Caps(start=64))
    assert engine.pacer.places(20, 20, 400) == 1
    assert engine.pacer.places(20, 20, 9000) == 0


def test_the_engines_room_bounds_the_cap() -> None:
    """What it tells of its cache counts whatever the gaps say."""
    engine = _Engine(Caps(start=64))
    engine.pacer.told(EngineLoad(20, 0, 0.5), 20)
    assert engine.pacer.window() == 34
    engine.pacer.told(EngineLoad(20, 0, 0.1), 20)
    assert engine.pacer.window() == 64


def test_words_move_the_cap() -> None:
    """Gaps that gateways tell of, in flights as long as rows are; of places all taken it grows."""
    engine = _Engine(Caps(start=16))
    engine.pacer.ended(4.5, None)
    assert engine.flight(0.001) == 16
    assert engine.flight(0.001) == 32
    assert [engine.flight(0.06) for _ in range(4)][-1] < 25


def test_rows_gaps_move_the_cap_while_nobody_calls() -> None:
    """Those of rows that had the engine for themselves; of an unknown load none counts."""
    for waiting, heard, rows in (
        (Waiting(0, 0), 0, 128),
        (Waiting(0, 0), 1, 16),
        (Waiting(1, 0), 0, 16),
        (None, 0, 16),
    ):
        engine = _Engine(Caps(start=16))
        engine.waiting = waiting
        for second in range(12):
            engine.clock.advance(1.0)
            engine.pacer.places(engine.pacer.window(), 0)
            if second % 2:
                engine.pacer.heard(TargetLoad(calls=heard))
            engine.pacer.ended(2.5, 0.001)
        assert engine.pacer.window() == rows
    engine = _Engine(Caps(start=16))
    for _ in range(12):
        engine.clock.advance(1.0)
        engine.pacer.places(16, 0)
        engine.pacer.ended(2.5, 0.5)
    assert engine.pacer.window() == 4


def test_a_fixed_cap_is_a_floor_that_is_the_ceiling() -> None:
    """Whatever the gaps are."""
    fixed = _Engine(Caps(start=64, floor=64, ceiling=64))
    assert [fixed.flight(1.0), fixed.flight(0.001)] == [64, 64]
