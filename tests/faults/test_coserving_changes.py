"""An engine changes under both lanes: rows flow again, people wait little, nothing is lost.

In real time, against a simulated engine in a process of its own. ``span`` is how long is looked at
before and after a change; the caps get as long to find their place.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
import statistics
import time
from typing import Any

import pytest

from tests.support.coserving import (
    EngineProcess,
    People,
    Rows,
    Talk,
    faults,
    gap,
    ttft,
)
from tests.support.serve import headway

_SPANS = pytest.mark.parametrize("span", [2.5, pytest.param(30.0, marks=pytest.mark.long)])
_GAP = 0.03
# Of a machine that does other things beside.
_SLACK = 0.25
_ENV = {"HEADWAY_RETRY_CAP_SECONDS": "60"}
_MOST_ROWS_A_SECOND = 30


@dataclass
class _Scene:
    """Both lanes, as they are before the change."""

    engine: EngineProcess
    people: People
    rows: Rows
    rate: float
    talks: list[Talk]


def _policy(*engines: EngineProcess) -> dict[str, Any]:
    lanes = {"batch": {"auto": True, "itl_target": _GAP}}
    return {
        "targets": {
            f"engine-{at}": {
                "kind": "vllm",
                "base_url": f"{engine.url}/v1",
                "models": ["m"],
                "lanes": lanes,
            }
            for at, engine in enumerate(engines)
        }
    }


@contextmanager
def _scene(tmp_path: Path, span: float, *more: EngineProcess, **control: Any) -> Iterator[_Scene]:
    """Ends with every row delivered once."""
    with EngineProcess("--profile", "a100-8b") as engine:
        if control:
            engine.change(**control)
        with headway(tmp_path, _policy(engine, *more), _ENV) as running:
            with People(running) as people:
                rows = Rows(running, round(_MOST_ROWS_A_SECOND * (2 + 3 * span))).start()
                at = time.monotonic()
                time.sleep(span / 2)
                rate = rows.rate(span)
                before = people.since(at)
                assert not faults(before)
                print("before", rate, ttft(before), gap(before), len(before))
                yield _Scene(engine, people, rows, rate, before)
            rows.whole(60 + 4 * span)


def _found_again(scene: _Scene, span: float, *, share: float) -> list[Talk]:
    """After a while both lanes are well: rows at ``share`` of their rate before."""
    time.sleep(span)
    at = time.monotonic()
    rate = scene.rows.rate(span)
    talks = scene.people.since(at)
    print("after", rate, ttft(talks), gap(talks), len(talks), faults(talks))
    assert rate >= share * scene.rate
    assert not faults(talks)
    return talks


@_SPANS
def test_restart_of_the_engine(tmp_path: Path, span: float) -> None:
    """Killed and started on the same port: as before, and no row has failed."""
    with _scene(tmp_path, span) as scene:
        scene.engine.kill()
        time.sleep(span / 5)
        scene.engine.start()
        talks = _found_again(scene, span, share=0.7)
        assert ttft(talks) <= 2 * ttft(scene.talks) + _SLACK


@_SPANS
def test_half_the_speed(tmp_path: Path, span: float) -> None:
    """The gap between tokens is kept again, by fewer rows in flight."""
    with _scene(tmp_path, span) as scene:
        scene.engine.change(speed=0.5)
        talks = _found_again(scene, span, share=0.2)
        assert ttft(talks) <= 3 * ttft(scene.talks) + _SLACK
        assert gap(talks) <= 1.2 * _GAP


@_SPANS
def test_half_the_cache(tmp_path: Path, span: float) -> None:
    """No more rows than fit, and hardly a call waits for cache."""
    with _scene(tmp_path, span, kv_tokens=8000) as scene:
        scene.engine.change(kv_tokens=4000)
        talks = _found_again(scene, span, share=0.3)
        assert ttft(talks) <= 2 * ttft(scene.talks) + _SLACK


@_SPANS
def test_no_metrics_any_more(tmp_path: Path, span: float) -> None:
    """What was known of the engine stays in force."""
    with _scene(tmp_path, span, kv_tokens=8000) as scene:
        scene.engine.change(metrics=False)
        talks = _found_again(scene, span, share=0.7)
        assert ttft(talks) <= 2 * ttft(scene.talks) + _SLACK


@_SPANS
def test_a_second_engine(tmp_path: Path, span: float) -> None:
    """One that was down from the start takes rows once it is there."""
    second = EngineProcess("--profile", "a100-8b")
    with _scene(tmp_path, span, second) as scene:
        with second:
            talks = _found_again(scene, span, share=1.2)
            assert ttft(talks) <= 2 * ttft(scene.talks) + _SLACK
            assert statistics.fmean(s["running"] for s in second.sampled(1)) > 2
