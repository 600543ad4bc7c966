"""Deliveries that are to be made, and are made once."""

from pathlib import Path

from gateway.core.clock import SystemClock
from gateway.schemas.webhooks import Event
from gateway.store.blobs import LocalBlobs
from gateway.store.client import StoreClient
from gateway.store.deliveries import Deliveries

EVENT = Event("batch.completed", "batch_1", 5)


async def test_one_is_claimed_and_ended(store: StoreClient, tmp_path: Path) -> None:
    """Nobody else gets it meanwhile; once made it stays so, however often it is added."""
    deliveries, now = Deliveries(store, LocalBlobs(tmp_path)), int(SystemClock().now())
    assert not await deliveries.add(EVENT, "a", "e1", now)
    assert not await deliveries.add(EVENT, "a", "e1", now)
    found = await deliveries.claim(60_000)
    assert found is not None
    assert (found.event, found.tenant, found.endpoint, found.tries) == (EVENT, "a", "e1", 0)
    assert await deliveries.claim(60_000) is None
    await deliveries.end(found)
    assert await deliveries.add(EVENT, "a", "e1", now)
    assert await store.execute_command("ZCARD", "gw:{hooks}:due") == 0


async def test_a_failed_one_comes_later(store: StoreClient, tmp_path: Path) -> None:
    """At its time, with its tries; a claim that runs out comes back too."""
    deliveries, now = Deliveries(store, LocalBlobs(tmp_path)), int(SystemClock().now())
    await deliveries.add(EVENT, "a", "e1", now)
    found = await deliveries.claim(60_000)
    assert found is not None
    await deliveries.later(found, 1000 * (now + 60))
    assert await deliveries.claim(60_000) is None
    await deliveries.later(found, 1000 * now)
    again = await deliveries.claim(1)
    assert again is not None
    assert (again.tries, again.since) == (1, now)


async def test_what_is_forgotten_is_dropped(store: StoreClient, tmp_path: Path) -> None:
    """A due entry without its record, or one that was made, is no work."""
    deliveries, now = Deliveries(store, LocalBlobs(tmp_path)), int(SystemClock().now())
    await deliveries.add(EVENT, "a", "e1", now)
    found = await deliveries.claim(1)
    assert found is not None
    await deliveries.end(found)
    await store.execute_command("ZADD", "gw:{hooks}:due", 0, found.id, 0, "evt_0.e")
    assert await deliveries.claim(1) is None
    assert await deliveries.claim(1) is None
    assert await store.execute_command("ZCARD", "gw:{hooks}:due") == 0


async def test_events_are_kept_on_disk(store: StoreClient, tmp_path: Path) -> None:
    """Until they are dropped, whatever becomes of Redis; keeping one twice is one."""
    deliveries = Deliveries(store, LocalBlobs(tmp_path))
    assert await deliveries.kept() == []
    await deliveries.keep(EVENT, "a")
    await deliveries.keep(EVENT, "a")
    await store.execute_command("FLUSHALL")
    assert await deliveries.kept() == [(EVENT, "a")]
    await deliveries.drop(EVENT)
    assert await deliveries.kept() == []
