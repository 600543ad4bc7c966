"""Commands of batch records on a real server."""

import asyncio

from gateway.store.client import StoreClient
from gateway.store.job_commands import IdempotencyClaim, JobCommands


async def test_a_record_is_written_once(store: StoreClient) -> None:
    """A second add changes nothing but the listing."""
    jobs = JobCommands(store)
    await jobs.add("batch_1", "a", {"status": "validating"})
    await jobs.add("batch_1", "a", {"status": "other"})
    assert await jobs.fields("batch_1") == {"status": "validating"}
    assert await jobs.fields("batch_2") == {}


async def test_pages_are_newest_first(store: StoreClient) -> None:
    """Ids sort by creation; a page goes on after an id that may be gone."""
    jobs = JobCommands(store)
    for number in (3, 1, 2):
        await jobs.add(f"batch_{number}", "a", {"status": "validating"})
    await jobs.add("batch_4", "b", {"status": "validating"})
    assert await jobs.page("a", 2, None) == ["batch_3", "batch_2"]
    assert await jobs.page("a", 9, "batch_2") == ["batch_1"]


async def test_a_claim_is_exclusive_until_it_runs_out(store: StoreClient) -> None:
    """The longest waiting batch first; a held claim is extended; an ended one is gone."""
    jobs = JobCommands(store)
    await jobs.ask_intake("batch_2", 2000)
    await jobs.ask_intake("batch_1", 1000)
    claimed = await asyncio.gather(*(jobs.claim_intake(80) for _ in range(3)))
    assert sorted(claimed, key=str) == [None, "batch_1", "batch_2"]
    await jobs.claim_intake(60_000, "batch_2")
    await asyncio.sleep(0.1)
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


async def test_the_epoch_tells_an_empty_server(store: StoreClient) -> None:
    """The mark is there until everything is lost."""
    jobs = JobCommands(store)
    assert [await jobs.start_epoch() for _ in range(2)] == [True, False]
    await store.execute_command("FLUSHALL")
    assert await jobs.start_epoch()


async def test_a_listing_of_its_own(store: StoreClient) -> None:
    """Jobs are not among the batches, and have an epoch of their own."""
    batches, jobs = JobCommands(store), JobCommands(store, "singles")
    for number in range(4):
        await jobs.add(f"job_{number}", "a", {"status": "queued"})
    assert await batches.page("a", 9, None) == []
    assert await batches.start_epoch()
    assert await jobs.start_epoch()
    await jobs.trim("a", 3)
    assert await jobs.page("a", 9, None) == ["job_3", "job_2", "job_1"]
    await jobs.remove("job_3", "a")
    assert await jobs.page("a", 9, None) == ["job_2", "job_1"]
    assert not await jobs.exists("job_3")


async def test_a_record_is_forgotten_after_a_while(store: StoreClient) -> None:
    """It goes by itself."""
    jobs = JobCommands(store)
    await jobs.add("batch_1", "a", {"status": "validating"})
    await jobs.expire("batch_1", 0)
    assert not await jobs.exists("batch_1")
