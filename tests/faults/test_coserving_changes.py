"""An engine changes under both lanes: rows flow again, people wait little, nothing is lost.

In real time, against simulated engines in processes of their own.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.coserving import EngineProcess, Lanes, People, Rows, faults
from tests.support.machine import slowness
from tests.support.serve import headway

_GAP = 0.03
_CACHE = 8000
_ENV = {"HEADWAY_RETRY_CAP_SECONDS": "60"}


class _Engines:
    """One that serves, and one that is down until it is added."""

    def __init__(self) -> None:
        self.first = EngineProcess("--profile", "a100-8b")
        self.second = EngineProcess("--profile", "a100-8b")

    def start(self) -> None:
        """Start the one that serves."""
        self.first.start().change(kv_tokens=_CACHE)

    def restart(self) -> None:
        """It dies, and comes back."""
        self.first.kill()
        time.sleep(0.5)
        self.start()

    def policy(self) -> dict[str, Any]:
        """Both serve the model ``m``."""
        lanes = {"batch": {"auto": True, "itl_target": _GAP}}
        target = {"kind": "vllm", "models": ["m"], "lanes": lanes}
        return {
            "targets": {
                "first": {**target, "base_url": f"{self.first.url}/v1"},
                "second": {**target, "base_url": f"{self.second.url}/v1"},
            }
        }


@dataclass(frozen=True)
class _Change:
    """``share`` of the rows a second before it are there after it; ``outage``: calls may fail."""

    apply: Callable[[_Engines], object]
    share: float
    outage: bool = False


_CHANGES = {
    "restart": _Change(_Engines.restart, 0.7, outage=True),
    "half the speed": _Change(lambda engines: engines.first.change(speed=0.5), 0.2),
    "half the cache": _Change(lambda engines: engines.first.change(kv_tokens=_CACHE // 2), 0.3),
    "no metrics": _Change(lambda engines: engines.first.change(metrics=False), 0.7),
    "a second engine": _Change(lambda engines: engines.second.start(), 1.2),
}


@dataclass
class _Span:
    """Looks at both lanes take ``window`` seconds; ``slack`` is for a machine that is busy."""

    rows: int
    window: float
    within: float
    slack: float


class _Scene:
    """Both lanes at a gateway."""

    def __init__(self, engines: _Engines, people: People, rows: Rows, span: _Span) -> None:
        self.engines = engines
        self._people = people
        self._span = span
        self._lanes = Lanes(people, rows, span.window)
        self.before = self._lanes.settle(lambda seen: seen.rate > 0, span.within)

    def change(self, name: str) -> None:
        """Change the engines, and see both lanes find their place again."""
        change, before = _CHANGES[name], self.before
        at = time.monotonic()
        change.apply(self.engines)
        self._lanes.settle(
            lambda seen: (
                seen.rate >= change.share * before.rate
                and seen.ttft <= 2 * before.ttft + self._span.slack
                and seen.gap <= 1.2 * _GAP * slowness()
            ),
            self._span.within,
        )
        assert change.outage or not faults(self._people.since(at))


@contextmanager
def _scene(tmp_path: Path, span: _Span) -> Iterator[_Scene]:
    """Ends with every row delivered once."""
    engines = _Engines()
    with ExitStack() as ending:
        ending.callback(engines.first.kill)
        ending.callback(engines.second.kill)
        engines.start()
        with headway(tmp_path, engines.policy(), _ENV) as running:
            rows = Rows(running, span.rows)
            with People(running) as people:
                rows.start()
                yield _Scene(engines, people, rows, span)
            engines.first.change(speed=8, kv_tokens=100_000)
            rows.whole(60 + span.rows / 20)


@pytest.mark.timeout(300)
def test_one_change_after_the_other(tmp_path: Path) -> None:
    """In seconds each; after all of them every row is delivered once."""
    with _scene(tmp_path, _Span(450, 1.0, 30, 0.25 * slowness())) as scene:
        scene.change("restart")
        scene.change("half the speed")
        scene.engines.first.change(speed=1)
        scene.change("no metrics")
        scene.engines.first.change(metrics=True)
        scene.change("half the cache")
        scene.engines.first.change(kv_tokens=_CACHE)
        scene.change("a second engine")


@pytest.mark.long
@pytest.mark.parametrize("name", _CHANGES)
def test_a_change(tmp_path: Path, name: str) -> None:
    """Each alone; a minute is what the caps get."""
    with _scene(tmp_path, _Span(1500, 10, 60, 0.1)) as scene:
        scene.change(name)
