"""What is learned of an engine while it works."""

import random

import pytest

from gateway.core.targets import EngineLoad
from gateway.core.usage import Usage
from gateway.pacing.advice import EngineFlags
from gateway.pacing.watch import EngineWatch
from tests.support.clock import ManualClock

PROMPT, OUTPUT = 400, 200


class _Engine:
    """Steps of 10 ms + 0.5 a row + 0.05 a prompt token, with rows of ours and of others."""

    def __init__(self, others: int = 0) -> None:
        self.clock = ManualClock()
        self.others = others
        self.watch = EngineWatch(EngineFlags(256, 2048), 0.03, lambda: self.others, self.clock)
        self._rows: dict[int, int] = {}
        self._next = 0
        self._random = random.Random(7)

    def run(self, seconds: float) -> None:
        """Rows come and go; their number changes, so that each part can be told from the rest."""
        end = self.clock.monotonic() + seconds
        wanted = 20
        while self.clock.monotonic() < end:
            if self._random.random() < 0.02:
                wanted = self._random.randint(4, 60)
            joins = len(self._rows) < wanted
            rows = len(self._rows) + self.others
            self.clock.advance((10 + 0.5 * rows + 0.05 * PROMPT * joins) / 1000)
            for row in list(self._rows):
                self.watch.token(row)
                self._rows[row] += 1
                if self._rows[row] == OUTPUT:
                    self.watch.end(row)
                    self.watch.done(Usage(PROMPT, OUTPUT))
                    del self._rows[row]
            if joins:
                self._next += 1
                self._rows[self._next] = 1
                self.watch.first(self._next, PROMPT)


@pytest.mark.parametrize("others", [0, 15])
def test_the_step_time_is_found_beside_the_rows_of_others(others: int) -> None:
    """Within a tenth for what matters: a step of many rows, and prompt tokens in it."""
    engine = _Engine(others)
    engine.run(30)
    assert engine.watch.finding() is None
    engine.run(300)
    found = engine.watch.finding()
    assert found is not None
    for rows, prompt in ((10 + others, 0), (50 + others, 0), (30 + others, 200)):
        kv = rows * (PROMPT + OUTPUT / 2)
        right = (10 + 0.5 * rows + 0.05 * prompt) / 1000
        assert found.step.seconds(rows, kv, prompt) == pytest.approx(right, rel=0.1)


def test_advice_is_for_the_target_and_the_flags() -> None:
    """A budget of 2048 prompt tokens takes 112 ms; for 30 ms it must be a sixth at most."""
    engine = _Engine()
    engine.run(330)
    found = engine.watch.finding()
    assert found is not None
    assert found.advice.gap_now > 0.1
    assert found.advice.gap_then <= 0.03
    assert found.advice.flags.max_num_batched_tokens <= 384
    told = found.as_json()
    assert told["itl_target_ms"] == 30
    assert told["reached"]
    assert told["flags"] == found.advice.command()


def test_the_cache_is_known_from_how_full_it_is() -> None:
    """Nearly full with our rows: no more of them fit than there are, so less can be done."""
    engine = _Engine()
    engine.run(330)
    found = engine.watch.finding()
    assert found is not None
    free = found.advice.offline_now
    for _ in range(100):
        engine.watch.told(EngineLoad(20, 0, 0.9))
    found = engine.watch.finding()
    assert found is not None
    assert found.advice.offline_now < free
