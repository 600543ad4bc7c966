"""Arms differ in what they must."""

import math

import pytest

from gateway.bench.coserve.arms import Arm, Scene, figures_of, run_arm
from gateway.bench.coserve.figures import Figures
from gateway.bench.coserve.rows import Backlog
from gateway.bench.workload.trace import TracedCall
from gateway.pacing.shared import Caps
from gateway.simulator.profile import PROFILES

SCENE = Scene(PROFILES["a100-8b"], seconds=120)


@pytest.fixture(scope="module")
def found() -> dict[str, Figures]:
    """All arms on one slice."""
    arms = (
        Arm("alone"),
        Arm("offline", cap=256, interactive=False),
        Arm("naive", cap=256),
        Arm("pools", cap=256, apart=True),
        Arm("headway", caps=Caps()),
    )
    plain = {arm.name: figures_of(run_arm(arm, SCENE, 1), SCENE) for arm in arms}
    return {name: f.beside(plain["alone"], plain["offline"]) for name, f in plain.items()}


def test_naive_hurts_people_and_headway_does_not(found: dict[str, Figures]) -> None:
    """By an order of magnitude."""
    assert found["naive"].ttft_p99 > 10 * found["headway"].ttft_p99
    assert found["headway"].interference < 2.5


def test_headway_does_more_than_a_pool_of_its_own(found: dict[str, Figures]) -> None:
    """At full interactive load, two engines."""
    assert found["headway"].offline_tokens > 0.95 * found["pools"].offline_tokens
    assert found["pools"].offline_tokens == pytest.approx(
        found["offline"].offline_tokens / 2, rel=0.05
    )


def test_an_engine_alone_is_as_published(found: dict[str, Figures]) -> None:
    """Figures of an independent simulation of the same load: 97 ms, 431 ms, 21,039 tokens."""
    assert found["alone"].ttft_p50 == pytest.approx(97, rel=0.15)
    assert found["alone"].ttft_p99 == pytest.approx(431, rel=0.3)
    assert found["offline"].offline_tokens == pytest.approx(21_039, rel=0.1)
    assert found["offline"].utilisation > 0.6


def test_slices_differ_and_repeat() -> None:
    """A seed is a slice; traced slices are taken as they are."""
    one, two, again = (run_arm(Arm("alone"), SCENE, seed).calls for seed in (1, 2, 1))
    assert [c.at for c in one] == [c.at for c in again] != [c.at for c in two]
    traced = Scene(SCENE.profile, traces=((), (TracedCall(3.0, 5, 5),)))
    assert [call.at for call in traced.traced(2)] == [3.0]


def test_rows_of_jobs_are_all_run() -> None:
    """And the run ends with the last."""
    record = run_arm(Arm("jobs", caps=Caps()), SCENE, 1, Backlog([(200, 5)] * 40, [3] * 40))
    assert record.ended == {3: 40}
    assert 20 < record.finished[3] < 60


def test_a_run_of_hardly_any_steps_has_figures() -> None:
    """Two calls and nothing else: what is measured in samples of steps is not a number."""
    calls = (TracedCall(1, 300, 20), TracedCall(25, 300, 20))
    scene = Scene(PROFILES["a100-8b"], seconds=45, traces=(calls,))
    figures = figures_of(run_arm(Arm("alone"), scene, 1), scene)
    assert (figures.calls, figures.failed, figures.slo) == (1, 0, 1.0)
    assert math.isnan(figures.utilisation)
