"""The queue and the bill, read from outside."""

from pathlib import Path

from pydantic import SecretStr

from gateway.bootstrap.views import queue_audit, queue_stats, usage_of_hours
from gateway.core.settings import Settings
from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient
from tests.support.segments import HOUR, SHARD, outcome, segment


async def test_they_show_what_is_there(tmp_path: Path, store: StoreClient, store_url: str) -> None:
    """Counters and invariants per shard; an empty bill is a bill."""
    queue = QueueClient(store)
    await queue.enqueue(SHARD, segment("j.0", 3))
    await queue.commit(SHARD, "", "j.0", [outcome(0)], HOUR)
    settings = Settings(data_dir=tmp_path, redis_url=SecretStr(store_url))
    assert SHARD in await queue_stats(settings)
    assert set(await queue_audit(settings)) == {SHARD}
    assert (await usage_of_hours(settings, 1, "nobody")).rows == ()
