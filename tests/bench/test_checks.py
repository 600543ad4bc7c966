"""The demo's promises."""

from dataclasses import replace

import pytest

from gateway.bench.checks import check_all, failed
from gateway.bench.measured import Measured
from gateway.core.usage import Usage
from tests.support.measured import good, latency, result


def test_good_figures_pass() -> None:
    """With every figure on the right side of its limit nothing is missed."""
    assert not failed(check_all(good()))


@pytest.mark.parametrize(
    ("measured", "promise"),
    [
        (replace(good(), single_speed=22.0), "batch ≥ 3"),
        (replace(good(), batch_rows=47.9), "occupancy"),
        (replace(good(), batch_rows=float("nan")), "occupancy"),
        (replace(good(), batch=result(answers=95)), "custom_id"),
        (replace(good(), shared=latency(p50=0.31, p99=0.5)), "p50"),
        (replace(good(), shared=latency(p50=0.2, p99=3.0)), "p99"),
        (replace(good(), metered={"interactive": Usage(10, 20)}), "batch"),
        (
            replace(good(), metered={"interactive": Usage(10, 21), "batch": Usage(200, 6400)}),
            "interactive",
        ),
    ],
)
def test_each_missed_figure_fails(measured: Measured, promise: str) -> None:
    """One figure on the wrong side, or never seen, is one failed check that names it."""
    missed = failed(check_all(measured))
    assert len(missed) == 1
    assert promise in missed[0].promise
