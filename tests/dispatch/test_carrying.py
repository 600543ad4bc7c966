"""A pool with a Batch API beside it."""

from gateway.dispatch.carriage import CarryRules
from tests.support.batch_provider import BatchProvider
from tests.support.carriers import carrying
from tests.support.rig import Rig


async def test_rows_in_a_hurry_go_direct(rig: Rig, provider: BatchProvider) -> None:
    """With less time than the policy wants left, no row is handed in."""
    carrying(rig, provider)
    await rig.add(20, window_ms=4000)
    async with rig.running():
        await rig.until_done(20)
    assert not provider.batches
    assert len(rig.target.calls) == 20


async def test_without_other_targets_all_are_handed_in(rig: Rig, provider: BatchProvider) -> None:
    """A batch that is full goes at once, the rest after the time of collecting."""
    rules = CarryRules("24h", slack=5.0, collect=0.2, poll=0.05, rows=16, batches=2)
    carrying(rig, provider, rules, alone=True)
    await rig.add(40, window_ms=4000)
    async with rig.running():
        view = await rig.until_done(40)
    assert view.ok == 40
    sizes = [
        len(provider.uploads[b["input_file_id"]].splitlines()) for b in provider.batches.values()
    ]
    assert max(sizes) == 16
    assert len({row["custom_id"] for row in provider.requests()}) == 40
    assert len(provider.requests()) == 40
