"""Background work that goes on."""

import asyncio
import logging

import pytest

from gateway.batches.loops import keep_doing
from gateway.core.errors import StoreFull


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
    monkeypatch.setattr("gateway.batches.loops._ERROR_PAUSE", 0.0)
    again = asyncio.Event()
    steps = 0

    async def step() -> None:
        nonlocal steps
        steps += 1
        if steps == 1:
            raise fault
        again.set()

    with caplog.at_level(logging.WARNING):
        work = asyncio.create_task(keep_doing(step, "sweeping", every=0))
        async with asyncio.timeout(5):
            await again.wait()
    work.cancel()
    assert "sweeping waits" in caplog.text


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
