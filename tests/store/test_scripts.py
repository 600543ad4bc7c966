"""The scripts as files, and what happens when the server forgets them."""

from importlib import resources

import pytest

from gateway.core.errors import StoreFull
from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient, RetryRule
from gateway.store.scripts import queue_script
from tests.support.segments import HOUR, SHARD, outcome, segment

QUEUE = [
    "audit",
    "cancel",
    "commit",
    "confirm_clock",
    "enqueue",
    "extend",
    "finish_claim",
    "finish_commit",
    "lease",
    "nack",
    "pause",
    "purge",
    "reap",
    "release",
    "reprioritise",
    "retry_dead",
    "start",
    "stats",
    "tick",
]


@pytest.mark.parametrize("name", QUEUE)
async def test_every_script_declares_itself_and_loads(name: str, store: StoreClient) -> None:
    """The flags line comes first, and the server compiles the source to the digest we compute."""
    script = queue_script(name)
    assert script.source.startswith("#!lua flags=")
    assert await store.script_load(script.source) == script.sha


@pytest.mark.parametrize("name", QUEUE)
def test_every_script_says_what_it_does(name: str) -> None:
    """A header comment opens each file."""
    source = (resources.files("gateway.store") / "lua" / f"{name}.lua").read_text()
    assert source.startswith("-- ")
    assert "-- Returns" in source or "Returns" in source.split("\n\n")[0]


def test_a_script_carries_what_it_uses_and_no_more() -> None:
    """Definitions run at every call: those of other scripts are left out."""
    stats, nack = queue_script("stats").source, queue_script("nack").source
    assert "local function num(" in stats
    assert "local function place(" not in stats
    assert nack.index("local function make_ready(") < nack.index("local function place(")
    assert "local function revive(" not in nack


async def test_a_forgotten_script_is_sent_again(store: StoreClient) -> None:
    """NOSCRIPT in the middle of work (a restart, SCRIPT FLUSH) is invisible to the caller."""
    queue = QueueClient(store)
    await queue.enqueue(SHARD, segment("a.0", 2))
    await store.execute_command("SCRIPT FLUSH")
    lease = await queue.lease(SHARD, "w", 2, 10**9, 5000)
    assert lease is not None
    await store.execute_command("SCRIPT FLUSH")
    results = [outcome(0), outcome(1)]
    assert (await queue.commit(SHARD, lease.id, "a.0", results, HOUR)).fresh == 2


async def test_full_memory_refuses_new_work_and_settles_old(store: StoreClient) -> None:
    """Enqueue and lease are refused; commit, release, reap, tick and cancel free memory."""
    queue = QueueClient(store)
    await queue.enqueue(SHARD, segment("a.0", 4))
    lease = await queue.lease(SHARD, "w", 2, 10**9, 60_000)
    assert lease is not None
    limit = (await store.execute_command("CONFIG", "GET", "maxmemory"))[b"maxmemory"]
    await store.execute_command("CONFIG", "SET", "maxmemory", "1mb")
    try:
        with pytest.raises(StoreFull):
            await queue.enqueue(SHARD, segment("b.0", 4))
        with pytest.raises(StoreFull):
            await queue.lease(SHARD, "w", 2, 10**9, 60_000)
        committed = await queue.commit(SHARD, lease.id, "a.0", [outcome(0)], HOUR)
        assert committed.fresh == 1
        assert await queue.release(SHARD, lease.id) == 1
        await queue.reap(SHARD, 10, RetryRule())
        await queue.tick(SHARD, 10)
        assert await queue.cancel(SHARD, "a.0", 0) is not None
    finally:
        await store.execute_command("CONFIG", "SET", "maxmemory", limit)
