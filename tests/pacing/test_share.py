"""The share of a dispatcher that is alone, and what a pacer does with a part."""

from gateway.core.targets import EngineLoad
from gateway.pacing.share import WHOLE
from gateway.pacing.shared import Caps, SharedEngine, Waiting
from gateway.pacing.window import FixedWindow
from tests.support.clock import ManualClock


class _Half:
    """Half of everything, beside 16 rows of another."""

    def window(self, cap: int) -> int:
        return cap // 2

    def rows(self, cap: int, running: int) -> int:
        return cap // 2 - running

    def prompts(self, cap: int, prefilling: int) -> int:
        return cap // 2 - prefilling

    def tokens(self, cap: int) -> float:
        return cap / 2

    def beside(self) -> int:
        return 16


def test_alone_there_is_the_whole() -> None:
    """Caps less what is used."""
    assert (WHOLE.window(8), WHOLE.rows(8, 3), WHOLE.prompts(2, 1)) == (8, 5, 1)
    assert (WHOLE.tokens(100), WHOLE.beside()) == (100, 0)


def test_a_fixed_window_is_shared() -> None:
    """Ours is a part; more than it, and nothing is free."""
    window = FixedWindow(8, _Half())
    assert (window.window(), window.places(3, 0), window.places(6, 0)) == (4, 1, 0)


def test_gate_and_cap_of_an_engine_are_shared() -> None:
    """Busy and idle gate, the cap on rows, and the tokens of short prompts."""
    now = [Waiting(0, 0)]
    caps = Caps(start=32, prefill_busy=2)
    pacer = SharedEngine(caps, lambda: now[0], ManualClock(), share=_Half())
    assert pacer.window() == 16
    assert pacer.places(2, 0) == 4
    assert pacer.places(8, 4, 4000) == 1
    assert pacer.places(8, 4, 4100) == 0
    now[0] = Waiting(1, 0)
    assert (pacer.places(2, 0), pacer.places(2, 1)) == (1, 0)


def test_what_the_engine_does_is_set_against_all_rows() -> None:
    """A third of the cache under 8 rows of ours and 16 of another: room for 61 together."""
    pacer = SharedEngine(Caps(start=128), lambda: None, ManualClock(), share=_Half())
    pacer.told(EngineLoad(24, 0, 1 / 3), 8)
    assert pacer.window() == 30
