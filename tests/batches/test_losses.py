"""A loss is noticed, and a repair counts only when nothing was lost while it went on."""

from gateway.batches.losses import Loss, Losses
from gateway.store.client import StoreClient
from gateway.store.job_commands import JobCommands


class _Moved(JobCommands):
    """Redis whose process was replaced once."""

    name = "first"

    async def server(self) -> str:
        return self.name


async def test_nothing_everything_something(store: StoreClient) -> None:
    """An empty server, the same one, another process, an emptied one."""
    redis = _Moved(store)
    losses = Losses(redis)
    assert await losses.noticed()
    assert await losses.begin() == Loss(some=True, all=True)
    await losses.end()
    assert not await losses.noticed()
    assert await losses.begin() == Loss(some=False, all=False)
    await losses.end()
    redis.name = "second"
    assert await losses.noticed()
    assert await losses.begin() == Loss(some=True, all=False)
    await losses.end()
    await store.execute_command("FLUSHALL")
    assert await losses.noticed()


async def test_a_loss_during_the_repair(store: StoreClient) -> None:
    """It is not taken for repaired, whoever looks."""
    losses, other = Losses(JobCommands(store)), Losses(JobCommands(store))
    await losses.begin()
    await store.execute_command("FLUSHALL")
    await losses.end()
    assert await losses.noticed()
    assert await other.begin() == Loss(some=True, all=True)
    await other.end()
    assert await losses.begin() == Loss(some=True, all=False)
    await losses.end()
    assert not await losses.noticed()
