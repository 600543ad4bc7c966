"""Steps counted from streams."""

import pytest

from gateway.pacing.streams import StreamSampler


def test_rows_cache_prompts_and_seconds_are_those_of_the_steps() -> None:
    """Three rows in steps of 20 ms; a fourth one's prompt is read in the middle."""
    sampler, found = StreamSampler(), []
    for step in range(420):
        now = 0.02 * step
        for stream in range(3):
            said = sampler.token(stream, now) if step else sampler.first(stream, 1000, now)
            found += [said] if said else []
        if step == 150:
            found += filter(None, [sampler.first("late", 500, now)])
    assert len(found) >= 3
    assert all(sample.seconds == pytest.approx(0.02) for sample in found)
    assert found[0].rows == pytest.approx(3, abs=0.2)
    assert found[1].kv == pytest.approx(3 * 1150 + 500 / 2, rel=0.03)
    assert sum(sample.prefill for sample in found[1:]) == pytest.approx(500 / 100, rel=0.2)


def test_rows_that_end_leave_the_cache() -> None:
    """And nothing is said while steps cannot be counted."""
    sampler, found = StreamSampler(), []
    for step in range(10):
        stream = f"short {step}"
        assert sampler.first(stream, 100, step * 0.3) is None
        sampler.end(stream)
    for step in range(150):
        now = 10 + 0.02 * step
        said = sampler.token("one", now) if step else sampler.first("one", 100, now)
        found += [said] if said else []
    assert found
    assert found[-1].kv < 300
