"""``headway queue`` against a real server."""

import json
from pathlib import Path

from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient
from tests.support.segments import SHARD, segment
from tests.support.serve import headway_command


async def test_stats_and_audit(tmp_path: Path, store: StoreClient, store_url: str) -> None:
    """One JSON line per shard; a healthy queue exits 0, a broken one 3."""
    queue = QueueClient(store)
    await queue.enqueue(SHARD, segment("j.0", 3))
    env = {"HEADWAY_REDIS_URL": store_url}
    where = ["--data-dir", str(tmp_path)]
    shown = headway_command(["queue", "stats", *where], env).stdout
    assert json.loads(shown)["shard"] == SHARD
    assert headway_command(["queue", "audit", *where], env).returncode == 0
    await store.execute_command("HSET", f"gw:{{{SHARD}}}:s:j.0", "ok", "2")
    broken = headway_command(["queue", "audit", *where], env)
    assert broken.returncode == 3
    assert SHARD in broken.stdout
