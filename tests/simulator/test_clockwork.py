"""Steps take the time they say."""

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from gateway.simulator.clockwork import Clockwork
from gateway.simulator.engine import Engine
from gateway.simulator.sequence import Sequence
from tests.support.simulated import PROFILE


@dataclass
class _Owner:
    over: asyncio.Event = field(default_factory=asyncio.Event)
    at: list[float] = field(default_factory=list)
    failed: bool | None = None

    def token(self) -> None:
        self.at.append(time.monotonic())

    def end(self, *, failed: bool) -> None:
        self.failed = failed
        self.over.set()


@pytest.mark.parametrize(("speed", "scale"), [(0.2, 1.0), (0.1, 2.0)])
async def test_tokens_come_when_the_profile_says(speed: float, scale: float) -> None:
    """Steps of 5 ms, whichever way they are made."""
    clockwork = Clockwork(Engine(PROFILE.faster(speed)), scale)
    running = asyncio.create_task(clockwork.run())
    owner = _Owner()
    clockwork.add(Sequence(10, 41, owner=owner))
    await owner.over.wait()
    running.cancel()
    assert len(owner.at) == 41
    assert owner.failed is False
    assert owner.at[-1] - owner.at[0] == pytest.approx(0.2, abs=0.05)
    assert (clockwork.prompt_tokens, clockwork.output_tokens) == (10, 41)


async def test_who_left_hears_nothing_and_others_go_on() -> None:
    """Also in the middle of a step; what never fits is told."""
    clockwork = Clockwork(Engine(PROFILE.faster(0.1)), 1.0)
    running = asyncio.create_task(clockwork.run())
    left, stays, huge = _Owner(), _Owner(), _Owner()
    gone = Sequence(10, 50, owner=left)
    for sequence in (gone, Sequence(10, 6, owner=stays), Sequence(3000, 1, owner=huge)):
        clockwork.add(sequence)
    await asyncio.sleep(0.005)
    clockwork.cancel(gone)
    await stays.over.wait()
    running.cancel()
    assert not left.at
    assert len(stays.at) == 6
    assert huge.failed
