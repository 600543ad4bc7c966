"""The queue and the bill, read from outside."""

from pathlib import Path

from pydantic import SecretStr

from gateway.bootstrap.views import queue_audit, queue_pauses, queue_stats, usage_of_hours
from gateway.core.settings import Settings
from gateway.store.blobs import LocalBlobs
from gateway.store.client import StoreClient
from gateway.store.control import Scope
from gateway.store.controls import Controls
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


async def test_what_is_paused(tmp_path: Path) -> None:
    """Everything, tenants and batches; what was resumed is not there; nothing is no answer."""
    settings = Settings(data_dir=tmp_path)
    assert await queue_pauses(settings) == {}
    controls = Controls(LocalBlobs(tmp_path))
    await controls.note_pause(Scope("tenant", "b"), [], paused=True)
    await controls.note_pause(Scope("tenant", "a"), [], paused=False)
    await controls.note_batch("batch_1", paused=True)
    found = {"everything": False, "tenants": ["b"], "batches": ["batch_1"]}
    assert await queue_pauses(settings) == found
    await controls.note_pause(Scope(), [], paused=True)
    assert (await queue_pauses(settings))["everything"]
