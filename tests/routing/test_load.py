"""What a gateway tells the dispatchers, and when."""

import asyncio
from collections.abc import Mapping
from itertools import pairwise

import pytest

from gateway.core.clock import SystemClock
from gateway.core.lanes import Lane
from gateway.core.load import TargetLoad
from gateway.policy.model import Policy
from gateway.routing.admission import Admission
from gateway.routing.load import LoadReporter

_POLICY = {
    "targets": {
        "up": {
            "base_url": "http://h/v1",
            "models": ["m"],
            "lanes": {"interactive": {"max_in_flight": 1}},
        }
    }
}


class _Heard:
    """Collects what is published, with its moment."""

    def __init__(self) -> None:
        self.words: list[tuple[float, Mapping[str, TargetLoad]]] = []
        self.fresh: dict[str, tuple[float, float | None]] = {}
        self.admission = Admission(Policy.model_validate(_POLICY), SystemClock())
        self.reporter = LoadReporter(self.admission, self.take, self.publish)

    def take(self) -> dict[str, tuple[float, float | None]]:
        fresh, self.fresh = self.fresh, {}
        return fresh

    async def publish(self, word: Mapping[str, TargetLoad]) -> None:
        self.words.append((asyncio.get_running_loop().time(), word))


async def _reporting(heard: _Heard) -> None:
    while True:
        await heard.reporter.report()


async def test_a_change_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call's coming and going are told with those that wait; no heartbeat is waited for."""
    monkeypatch.setattr("gateway.routing.load._HEARTBEAT_SECONDS", 60.0)
    heard = _Heard()
    task = asyncio.create_task(_reporting(heard))
    await asyncio.sleep(0.1)
    slot = await heard.admission.enter("up", Lane.INTERACTIVE)
    waiting = asyncio.ensure_future(heard.admission.enter("up", Lane.INTERACTIVE))
    async with asyncio.timeout(5):
        while not (heard.words and heard.words[-1][1].get("up") == TargetLoad(2)):  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.001)
        slot.release()
        (await waiting).release()
        while heard.words[-1][1]:  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.001)
    assert min(b[0] - a[0] for a, b in pairwise(heard.words)) > 0.045
    task.cancel()


async def test_silence_is_kept_short() -> None:
    """Without a change the same is told again."""
    heard = _Heard()
    task = asyncio.create_task(_reporting(heard))
    async with asyncio.timeout(5):
        count = len(heard.words)
        while len(heard.words) < count + 2:  # noqa: ASYNC110 - a state elsewhere
            await asyncio.sleep(0.01)
    gaps = [b[0] - a[0] for a, b in pairwise(heard.words)]
    assert min(gaps) > 0.2
    assert min(gaps) < 0.9
    task.cancel()


async def test_fresh_latencies_are_told_once() -> None:
    """A mean that was told is not told again, also when no call is left."""
    heard = _Heard()
    heard.fresh = {"up": (0.2, 0.03)}
    await heard.reporter.report()
    await heard.reporter.report()
    assert [word for _, word in heard.words] == [{"up": TargetLoad(0, 0, 0.2, 0.03)}, {}]
