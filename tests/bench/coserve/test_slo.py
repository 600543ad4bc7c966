"""What a caller is promised."""

import pytest

from gateway.bench.coserve.record import CallRecord
from gateway.bench.coserve.slo import USUAL, Slo


def _call(wait: float, gap: float, *, failed: bool = False) -> CallRecord:
    first = 1.0 + wait
    return CallRecord(1.0, 9, 3, first, first + 2 * gap, tokens=3, failed=failed)


def test_it_is_met_by_the_first_token_and_the_mean_gap() -> None:
    """Both, by a call that did not fail."""
    assert USUAL.met(_call(0.4, 0.04))
    assert not USUAL.met(_call(0.6, 0.04))
    assert not USUAL.met(_call(0.4, 0.06))
    assert not USUAL.met(_call(0.4, 0.04, failed=True))
    assert not USUAL.met(CallRecord(1.0, 9, 3))


def test_on_a_slow_engine_it_is_so_many_times_what_calls_have_alone() -> None:
    """Of nineteen in twenty of them."""
    calls = [_call(at / 10, at / 100) for at in range(1, 21)]
    slo = Slo.of_alone(calls, 2)
    assert slo.ttft == pytest.approx(3.8)
    assert slo.itl == pytest.approx(0.38)
