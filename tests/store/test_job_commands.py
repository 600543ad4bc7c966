"""Commands of batch records on a real server."""

import asyncio

from gateway.core.clock import SystemClock
from gateway.store.client import StoreClient
from gateway.store.job_commands import IdempotencyClaim, JobCommands, key_digest


async def test_a_record_is_written_once(store: StoreClient) -> None:
    """A second add changes nothing but the listing."""
    jobs = JobCommands(store)
    await jobs.add("batch_1", "a", {"facts": "{}", "status": "validating"})
    await jobs.add("batch_1", "a", {"facts": "{}", "status": "other"})
    assert await jobs.fields("batch_1") == {"facts": "{}", "status": "validating"}
    assert await jobs.fields("batch_2") == {}


async def test_pages_are_newest_first(store: StoreClient) -> None:
    """Ids sort by creation; a page goes on after an id that may be gone."""
    jobs = JobCommands(store)
    for number in (3, 1, 2):
        await jobs.add(f"batch_{number}", "a", {"facts": "{}", "status": "validating"})
    await jobs.add("batch_4", "b", {"facts": "{}", "status": "validating"})
    assert await jobs.page("a", 2, None) == ["batch_3", "batch_2"]
    assert await jobs.page("a", 9, "batch_2") == ["batch_1"]


async def test_a_claim_is_exclusive_until_it_runs_out(store: StoreClient) -> None:
    """The longest waiting batch first; a held claim is extended; an ended one is gone."""
    jobs = JobCommands(store)
    await jobs.ask_intake("batch_2", 2000)
    await jobs.ask_intake("batch_1", 1000)
    claimed = await asyncio.gather(*(jobs.claim_intake(500) for _ in range(3)))
    assert sorted(claimed, key=str) == [None, "batch_1", "batch_2"]
    await jobs.claim_intake(60_000, "batch_2")
    await asyncio.sleep(0.55)
    assert await jobs.claim_intake(60_000) == "batch_1"
    await jobs.end_intake("batch_2")
    assert await jobs.claim_intake(60_000, "batch_2") is None


async def test_an_idempotency_key_belongs_to_its_tenant(store: StoreClient) -> None:
    """The first claim wins within a tenant; another tenant's key is another key."""
    jobs = JobCommands(store)
    first, second = IdempotencyClaim("batch_1", "d"), IdempotencyClaim("batch_2", "e")
    assert await jobs.claim_key("a", "k", first) == first
    assert await jobs.claim_key("a", "k", second) == first
    assert await jobs.claim_key("b", "k", second) == second


async def test_an_epoch_begins_when_all_is_put_back(store: StoreClient) -> None:
    """It has its name at the end; a loss in between leaves none."""
    jobs = JobCommands(store)
    epoch = await jobs.begin_epoch()
    assert await jobs.epoch() is None
    assert await jobs.end_epoch(epoch)
    assert await jobs.epoch() == epoch
    await store.execute_command("FLUSHALL")
    epoch = await jobs.begin_epoch()
    await store.execute_command("FLUSHALL")
    assert not await jobs.end_epoch(epoch)
    assert await jobs.epoch() is None


async def test_a_lost_record_does_not_come_back_as_a_torso(store: StoreClient) -> None:
    """Fields are written to a record that is there, and to no other."""
    jobs = JobCommands(store)
    await jobs.set_fields("batch_1", {"status": "failed"})
    assert await jobs.fields("batch_1") == {}
    await jobs.add("batch_1", "a", {"facts": "{}", "status": "validating"})
    await jobs.set_fields("batch_1", {"status": "failed"})
    assert (await jobs.fields("batch_1"))["status"] == "failed"


async def test_a_key_is_restored_for_the_rest_of_its_time(store: StoreClient) -> None:
    """24 h from the creation of its batch; not at all when those are over."""
    jobs = JobCommands(store)
    claim, now = IdempotencyClaim("batch_1", "d"), int(SystemClock().now())
    await jobs.restore_key("a", key_digest("old"), claim, now - 86_401)
    assert await jobs.held_key("a", "old") is None
    await jobs.restore_key("a", key_digest("k"), claim, now - 3600)
    assert await jobs.held_key("a", "k") == claim


async def test_the_server_has_a_name(store: StoreClient) -> None:
    """The same one as long as it runs."""
    jobs = JobCommands(store)
    assert await jobs.server() == await jobs.server() != ""


async def test_a_listing_of_its_own(store: StoreClient) -> None:
    """Jobs are not among the batches, and have an epoch of their own."""
    batches, jobs = JobCommands(store), JobCommands(store, "singles")
    for number in range(4):
        await jobs.add(f"job_{number}", "a", {"facts": "{}", "status": "queued"})
    assert await batches.page("a", 9, None) == []
    assert await batches.end_epoch(await batches.begin_epoch())
    assert await jobs.epoch() is None
    await jobs.trim("a", 3)
    assert await jobs.page("a", 9, None) == ["job_3", "job_2", "job_1"]
    await jobs.remove("job_3", "a")
    assert await jobs.page("a", 9, None) == ["job_2", "job_1"]
    assert not await jobs.exists("job_3")


async def test_a_record_is_forgotten_after_a_while(store: StoreClient) -> None:
    """It goes by itself."""
    jobs = JobCommands(store)
    await jobs.add("batch_1", "a", {"facts": "{}", "status": "validating"})
    await jobs.expire("batch_1", 0)
    assert not await jobs.exists("batch_1")
