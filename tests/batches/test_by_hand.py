"""What an operator set by hand holds after Redis lost everything."""

import orjson
import pytest
from pydantic import SecretStr

from gateway.bootstrap.queue_admin import Selection, open_admin
from gateway.core.settings import Settings
from gateway.store.keys import shard_of
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


async def _lose_everything(plane: BatchPlane) -> None:
    await plane.store.flushall()
    await plane.reconciler.look()
    await plane.job_keeper.look()
    while await plane.intake.step():
        pass


@pytest.mark.parametrize("which", ["batch", "tenant", "all"])
async def test_a_pause_outlives_a_loss(plane: BatchPlane, store_url: str, which: str) -> None:
    """Of a batch, a tenant or everything; then it can be resumed, and a resume outlives one."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    await plane.reconciler.look()
    batch_id = await plane.start(*(chat_line(str(n), "x") for n in range(4)))
    assert await plane.run(1) == 1
    chosen = {
        "batch": Selection(batch_id),
        "tenant": Selection(tenant="a"),
        "all": Selection(),
    }[which]
    async with open_admin(settings) as admin:
        assert await admin.pause(chosen, resume=False) == 1
        await _lose_everything(plane)
        assert await plane.run(9) == 0
        assert await plane.queue.shards() == [shard_of("m")]
        assert await admin.pause(chosen, resume=True) == 1
    await _lose_everything(plane)
    assert await plane.run(9) == 3
    await plane.finish()
    assert (await plane.get(batch_id))["request_counts"]["completed"] == 4
    assert await plane.queue.audit(shard_of("m")) == []


async def test_a_paused_tenants_jobs_wait_after_a_loss(plane: BatchPlane, store_url: str) -> None:
    """Also when they are put back before anything else."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    await plane.job()
    async with open_admin(settings) as admin:
        await admin.pause(Selection(tenant="a"), resume=False)
        await plane.store.flushall()
        assert await plane.job_keeper.step() == 1
        assert await plane.run(9) == 0
        assert await admin.pause(Selection(tenant="a"), resume=True) == 1
    assert await plane.run(9) == 1


@pytest.mark.parametrize("tenant", ["a", None])
async def test_a_pause_holds_for_what_comes(
    plane: BatchPlane, store_url: str, tenant: str | None
) -> None:
    """Models and tenants that the queue never saw: batches and jobs wait, also after a loss."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    await plane.reconciler.look()
    async with open_admin(settings) as admin:
        assert await admin.pause(Selection(tenant=tenant), resume=False) == 0
        await plane.start(chat_line("1", "x"))
        assert await admin.pause(Selection(tenant=tenant), resume=False) == 1
        await plane.start(chat_line("1", "x"), chat_line("2", "x", model="n"))
        await plane.job()
        for lost in (False, True):
            if lost:
                await _lose_everything(plane)
            assert await plane.run(9) + await plane.run(9, model="n") == 0
        await admin.pause(Selection(tenant=tenant), resume=True)
    await plane.start(chat_line("1", "x", model="n"))
    assert (await plane.run(9), await plane.run(9, model="n")) == (3, 2)
    for model in ("m", "n"):
        assert await plane.queue.audit(shard_of(model)) == []


async def test_a_batch_is_paused_before_it_is_validated(plane: BatchPlane, store_url: str) -> None:
    """It has no segments yet; none of its rows starts. One that has ended is not paused."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    failed = await plane.start()
    content = orjson.dumps(chat_line("1", "x"))
    batch_id = (await plane.create(await plane.upload(content)))["id"]
    async with open_admin(settings) as admin:
        assert await admin.pause(Selection(failed), resume=False) == 0
        assert await admin.pause(Selection(batch_id), resume=False) == 1
        await plane.intake.step()
        assert await plane.run(9) == 0
        assert await admin.pause(Selection(batch_id), resume=True) == 1
        assert await plane.run(9) == 1


@pytest.mark.parametrize("which", ["batch", "tenant"])
async def test_a_priority_outlives_a_loss(plane: BatchPlane, store_url: str, which: str) -> None:
    """A batch that was moved ahead is still ahead."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    first, second = [await plane.start(chat_line("1", "x"), chat_line("2", "x")) for _ in range(2)]
    async with open_admin(settings) as admin:
        if which == "tenant":
            assert await admin.reprioritise(Selection(tenant="a"), 30) == 2
            assert await admin.reprioritise(Selection(first), 0) == 1
        else:
            assert await admin.reprioritise(Selection(second), 30) == 1
    await _lose_everything(plane)
    assert await plane.run(2) == 2
    assert [(await plane.get(i))["request_counts"]["completed"] for i in (first, second)] == [0, 2]


async def test_an_ended_batch_keeps_nothing(plane: BatchPlane, store_url: str) -> None:
    """What was set goes with what the batch needed to run."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    batch_id = await plane.start(chat_line("1", "x"))
    async with open_admin(settings) as admin:
        await admin.reprioritise(Selection(batch_id), 3)
        await plane.run(9)
        await plane.finish()
        assert await admin.pause(Selection(batch_id), resume=False) == 0
    assert (await plane.get(batch_id))["status"] == "completed"
    assert not list(plane.root.rglob("control*"))
