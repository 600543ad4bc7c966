"""Background work that goes on."""

import asyncio
import itertools
import logging

import pytest

from gateway.core.errors import StoreFull
from gateway.core.loops import keep_doing


async def test_busy_work_is_not_interrupted_by_pauses() -> None:
    """As long as steps find something the next one follows at once."""
    steps = 0

    async def step() -> bool:
        nonlocal steps
        steps += 1
        return steps < 100

    work = asyncio.create_task(keep_doing(step, "work", every=60, busy=True))
    async with asyncio.timeout(5):
        while steps < 100:  # noqa: ASYNC110 - the step itself cannot tell that a pause began
            await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    work.cancel()
    assert steps == 100


@pytest.mark.parametrize("fault", [RuntimeError("once"), StoreFull("once")])
async def test_a_fault_is_told_and_is_no_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """The next step is taken after a pause; a known fault is one line."""
    monkeypatch.setattr("gateway.core.loops._ERROR_PAUSE", 0.0)
    again = asyncio.Event()
    steps = 0

    async def step() -> None:
        nonlocal steps
        steps += 1
        if steps <= 3:
            raise fault
        if steps == 5:
            again.set()

    with caplog.at_level(logging.INFO):
        work = asyncio.create_task(keep_doing(step, "sweeping", every=0))
        async with asyncio.timeout(5):
            await again.wait()
    work.cancel()
    assert caplog.text.count("sweeping waits") == 3
    assert caplog.text.count("sweeping goes on") == 1


async def test_faults_that_last_are_met_at_growing_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store that stays away is not asked ten times a second."""
    monkeypatch.setattr("gateway.core.loops._ERROR_PAUSE", 0.05)
    monkeypatch.setattr("gateway.core.loops._LONGEST_PAUSE", 0.2)
    times: list[float] = []

    async def step() -> None:
        times.append(asyncio.get_running_loop().time())
        raise StoreFull("always")

    work = asyncio.create_task(keep_doing(step, "work", every=0))
    async with asyncio.timeout(10):
        while len(times) < 6:  # noqa: ASYNC110 - the step itself cannot tell
            await asyncio.sleep(0.01)
    work.cancel()
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert all(gap >= least for gap, least in zip(gaps, (0.05, 0.1, 0.2, 0.2, 0.2), strict=True))


async def test_a_wake_ends_the_pause() -> None:
    """The next step follows at once, and the one after it waits again."""
    steps, wake = 0, asyncio.Event()

    async def step() -> None:
        nonlocal steps
        steps += 1

    work = asyncio.create_task(keep_doing(step, "work", every=60, wake=wake))
    await asyncio.sleep(0.02)
    wake.set()
    await asyncio.sleep(0.02)
    work.cancel()
    assert steps == 2
