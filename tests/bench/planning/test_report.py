"""Plans as they are printed."""

import json

import pytest

from gateway.bench.planning.plan import Interactive, Job, make_plan
from gateway.bench.planning.report import as_json, as_text, span
from gateway.bench.planning.steady import Shape
from gateway.simulator.profile import PROFILES

JOB = Job(50_000, Shape(2572, 303), 3600)


def test_the_text_says_what_the_json_says() -> None:
    """Workers, batch, bound, cost and the alternatives."""
    plan = make_plan(PROFILES["a100-8b"], JOB, Interactive(5, Shape(1180, 252)))
    said, text = as_json(plan), as_text(plan)
    assert f"Workers: {said['workers']} beside" in text
    assert said["bound"] in text
    assert "One worker more" in text
    assert "One worker fewer" in text
    assert sum(said["step_shares"].values()) == pytest.approx(1, abs=0.01)


def test_what_never_ends_is_null() -> None:
    """JSON has no infinity."""
    plan = make_plan(PROFILES["a100-8b"], JOB, Interactive(50, Shape(1180, 252)), workers=1)
    said = json.loads(json.dumps(as_json(plan), allow_nan=False))
    assert said["fleet"]["seconds"] is None
    assert "never" in as_text(plan)
    assert said["warnings"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (600, "10 min"), (9000, "2.5 h"), (float("inf"), "never")]
)
def test_times_are_said_as_people_say_them(seconds: float, text: str) -> None:
    """In the unit that fits."""
    assert span(seconds) == text
