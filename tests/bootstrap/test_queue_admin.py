"""The operator's commands on a queue with batches."""

import pytest
from pydantic import SecretStr

from gateway.bootstrap.queue_admin import Selection, open_admin
from gateway.core.errors import NotFound
from gateway.core.settings import Settings
from gateway.core.work import RowFailure, TryKind
from gateway.store.keys import shard_of
from gateway.store.queue import RetryRule
from tests.support.batch import chat_line
from tests.support.batch_plane import BatchPlane


async def test_a_batch_is_paused_in_all_its_shards(plane: BatchPlane, store_url: str) -> None:
    """By its id, by its tenant, or with everything; resumed the same way."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    batch_id = await plane.start(chat_line("1", "x"), chat_line("2", "x", model="n"))
    async with open_admin(settings) as admin:
        for chosen in (Selection(batch_id), Selection(tenant="a"), Selection()):
            assert await admin.pause(chosen, resume=False) == 2
            assert await plane.run(10) + await plane.run(10, model="n") == 0
            assert await admin.pause(chosen, resume=True) == 2
        assert await admin.reprioritise(Selection(batch_id), 5) == 2
        assert await admin.reweigh("a", 2.0) == 2
        assert await admin.confirm_clock() == {}
        with pytest.raises(NotFound):
            await admin.pause(Selection("batch_none"), resume=False)
    assert await plane.run(10) + await plane.run(10, model="n") == 2


async def test_a_job_is_paused_and_purged(plane: BatchPlane, store_url: str) -> None:
    """Its id works wherever the id of a batch does."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    job_id = (await plane.job())["id"]
    async with open_admin(settings) as admin:
        assert await admin.pause(Selection(job_id), resume=False) == 1
        assert await plane.run(1) == 0
        assert await admin.pause(Selection(job_id), resume=True) == 1
        assert await plane.run(1) == 1
        await plane.finish()
        await admin.purge(job_id)
        with pytest.raises(NotFound):
            await admin.purge(job_id)


async def test_given_up_rows_are_shown(plane: BatchPlane, store_url: str) -> None:
    """Newest first, with reason and last error; those without a line can start over."""
    settings = Settings(data_dir=plane.root, redis_url=SecretStr(store_url))
    batch_id = await plane.start(chat_line("1", "x"))
    segment, rule = f"{batch_id}.0", RetryRule(max_tries=1)
    lease = await plane.queue.lease(shard_of("m"), "w", 1, 10**9, 1)
    assert lease is not None
    failure = RowFailure(0, TryKind.ERROR, "timeout")
    await plane.queue.nack(shard_of("m"), lease.id, segment, [failure], rule)
    async with open_admin(settings) as admin:
        (row,) = await admin.dead(10)
        assert (row["segment"], row["row"], row["shard"]) == (segment, 0, shard_of("m"))
        assert (row["reason"], row["last_error"]) == ("max_tries", "timeout")
        assert await admin.retry_dead(None) == 0
        await plane.queue.reap(shard_of("m"), 10, rule)
        assert await admin.retry_dead(batch_id) == 1
    assert await plane.run(1) == 1
    await plane.finish()
    async with open_admin(settings) as admin:
        await admin.purge(batch_id)
    assert (await plane.a.get(f"/v1/batches/{batch_id}")).status_code == 404
