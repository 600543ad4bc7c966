"""A dead target is told from one lost connection."""

import asyncio

from gateway.dispatch.witness import Attempt, Sign, crashed


async def test_a_row_that_was_alone_is_taken_for_a_crash() -> None:
    """There is nobody to say otherwise."""
    assert await crashed([])


async def test_all_lost_together_is_a_crash() -> None:
    """Connections to a dead process end together; new ones are refused."""
    assert await crashed([Attempt(Sign.LOST), Attempt(Sign.REFUSED), Attempt(Sign.STOPPED)])


async def test_a_row_still_running_is_a_witness() -> None:
    """The process lives: one connection was lost."""
    assert not await crashed([Attempt(Sign.LOST), Attempt()])


async def test_a_late_loss_is_seen() -> None:
    """Losses arrive one after the other; the verdict waits for them."""
    late = Attempt()
    verdict = asyncio.create_task(crashed([late]))
    await asyncio.sleep(0)
    late.sign = Sign.LOST
    assert await verdict
