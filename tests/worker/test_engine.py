"""The engine as a thread."""

import asyncio

from tests.support.worker import complete, tiny_worker


async def test_tokens_are_counted_once() -> None:
    """Sums over steps are the sums over answers, less the token each prompt gives."""
    async with tiny_worker() as (client, engine):
        calls = (complete(client, f"p{n}", max_tokens=9, ignore_eos=True) for n in range(6))
        answers = await asyncio.gather(*calls)
        counts = engine.counts
    assert counts.prompt_tokens == sum(a["usage"]["prompt_tokens"] for a in answers)
    assert counts.row_steps + 6 == sum(a["usage"]["completion_tokens"] for a in answers)


async def test_rows_are_decoded_together() -> None:
    """Sixteen calls take far fewer steps than one after the other."""
    async with tiny_worker() as (client, engine):
        calls = (complete(client, f"p{n}", max_tokens=20, ignore_eos=True) for n in range(16))
        await asyncio.gather(*calls)
        assert engine.counts.row_steps / engine.counts.steps > 4


async def test_an_idle_engine_rests() -> None:
    """No steps are run when there is nothing to do, and stop ends the thread."""
    async with tiny_worker() as (client, engine):
        await complete(client, "a")
        steps = engine.counts.steps
        await asyncio.sleep(0.05)
        assert engine.counts.steps == steps
