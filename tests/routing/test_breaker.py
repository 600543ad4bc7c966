"""When a failing target is left out and when it comes back."""

from gateway.policy.target import BreakerPolicy
from gateway.routing.breaker import Breaker

RULE = BreakerPolicy(failures=3, pause=1, longest=4)


def opened(at: float = 0.0) -> Breaker:
    """A breaker after three failures."""
    breaker = Breaker(RULE)
    for _ in range(3):
        breaker.failed(at)
    return breaker


def test_failures_in_a_row_open_it() -> None:
    """Not one fewer; a success between them starts the count again."""
    breaker = Breaker(RULE)
    for _ in range(2):
        breaker.failed(0)
    breaker.worked()
    for _ in range(2):
        breaker.failed(0)
    assert breaker.wait(0) == 0
    breaker.failed(0)
    assert breaker.wait(0.25) == 0.75


def test_half_of_the_calls_open_it() -> None:
    """A target that fails two calls of three is left out though none fail in a row of three."""
    breaker = Breaker(RULE)
    for _ in range(40):
        breaker.failed(0)
        breaker.failed(0)
        if breaker.is_open:
            break
        breaker.worked()
    assert breaker.is_open


def test_one_call_tries_it_after_the_pause() -> None:
    """The others wait for the next pause, whatever becomes of that call."""
    breaker = opened()
    assert breaker.wait(1) == 0
    breaker.enter(1)
    assert breaker.wait(1.5) == 0.5
    assert breaker.wait(2) == 0


def test_pauses_double_and_end() -> None:
    """Each failed try doubles the pause up to the longest; a success forgets all of it."""
    breaker = opened()
    waits = []
    now = 0.0
    for _ in range(4):
        now += breaker.wait(now)
        breaker.enter(now)
        breaker.failed(now)
        waits.append(breaker.wait(now))
    assert waits == [2, 4, 4, 4]
    breaker.worked()
    assert breaker.wait(now) == 0
    for _ in range(2):
        breaker.failed(now)
    assert breaker.wait(now) == 0


def test_a_reason_to_ask_again() -> None:
    """A good health check lets the next call through at once."""
    breaker = opened()
    breaker.probe_now()
    assert breaker.wait(0) == 0
    assert breaker.is_open


def test_calls_that_were_under_way_lengthen_no_pause() -> None:
    """Fifty calls that fail at the same moment are one reason to leave it alone for a moment."""
    breaker = opened()
    for _ in range(47):
        breaker.failed(0.5)
    assert breaker.wait(0.5) == 0.5
    breaker.enter(1)
    for _ in range(3):
        breaker.failed(1)
    assert breaker.wait(1) == 2


def test_it_may_be_switched_off() -> None:
    """As a whole, or of its two rules the one or the other."""
    always = Breaker(BreakerPolicy.model_validate("off"))
    row = Breaker(BreakerPolicy(failures=10**6, share=1))
    share = Breaker(BreakerPolicy(failures=10**6))
    for number in range(1000):
        for breaker in (always, row, share):
            breaker.failed(0)
        assert (always.is_open, row.is_open) == (False, False)
        assert share.is_open == (number >= 13)
