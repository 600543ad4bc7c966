"""``headway queue`` against a real server."""

import json
from pathlib import Path

import pytest

from gateway.core.work import RowFailure, TryKind
from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient, RetryRule
from tests.support.segments import SHARD, segment
from tests.support.serve import headway_command


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


def _queue(store_url: str, tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    command = ["queue", *arguments, "--data-dir", str(tmp_path)]
    ended = headway_command(command, {"HEADWAY_REDIS_URL": store_url})
    return ended.returncode, ended.stdout, ended.stderr


async def test_stats_and_audit(
    tmp_path: Path, store: StoreClient, store_url: str, queue: QueueClient
) -> None:
    """One JSON line per shard; a healthy queue exits 0, a broken one 1 and says what is wrong."""
    await queue.enqueue(SHARD, segment("j.0", 3))
    shown = json.loads(_queue(store_url, tmp_path, "stats")[1])
    assert (shown["shard"], shown["rows_waiting"], shown["paused"]) == (SHARD, 3, 0)
    assert _queue(store_url, tmp_path, "audit") == (0, f"{SHARD}: ok\n", "")
    await store.execute_command("HSET", f"gw:{{{SHARD}}}:s:j.0", "ok", "2")
    code, told, _ = _queue(store_url, tmp_path, "audit")
    assert code == 1
    assert told.startswith(f"{SHARD}: I2 j.0")


async def test_pause_and_resume(tmp_path: Path, store_url: str, queue: QueueClient) -> None:
    """A paused tenant is not served; what is meant must be said."""
    await queue.enqueue(SHARD, segment("j.0", 3))
    assert _queue(store_url, tmp_path, "pause", "--tenant", "t")[:2] == (
        0,
        "tenant t is paused, also what comes\n",
    )
    assert await queue.lease(SHARD, "w", 1, 10**9, 5000) is None
    shown = json.loads(_queue(store_url, tmp_path, "stats")[1].splitlines()[-1])
    assert shown == {"paused": {"everything": False, "tenants": ["t"], "batches": []}}
    assert _queue(store_url, tmp_path, "resume", "--tenant", "t")[:2] == (
        0,
        "tenant t is resumed\n",
    )
    assert await queue.lease(SHARD, "w", 1, 10**9, 5000) is not None
    assert _queue(store_url, tmp_path, "pause")[0] == 2
    code, _, told = _queue(store_url, tmp_path, "pause", "batch_none")
    assert code == 1
    assert "No such batch" in told


async def test_order(tmp_path: Path, store_url: str, queue: QueueClient) -> None:
    """A tenant gets another weight; a batch is moved, not weighed."""
    await queue.enqueue(SHARD, segment("j.0", 3))
    weigh = ("reprioritise", "--tenant", "t", "--weight", "3")
    assert _queue(store_url, tmp_path, *weigh)[:2] == (0, "1 changed\n")
    move = ("reprioritise", "--tenant", "t", "--priority", "10")
    assert _queue(store_url, tmp_path, *move)[:2] == (0, "1 changed\n")
    assert _queue(store_url, tmp_path, "reprioritise", "batch_1", "--weight", "3")[0] == 2


async def test_dead_rows_and_the_clock(tmp_path: Path, store_url: str, queue: QueueClient) -> None:
    """Given up rows are listed with their reason; a leap is confirmed; a purge needs its batch."""
    await queue.enqueue(SHARD, segment("j.0", 1))
    lease = await queue.lease(SHARD, "w", 1, 10**9, 60_000)
    assert lease is not None
    failure = RowFailure(0, TryKind.ERROR, "timeout")
    await queue.nack(SHARD, lease.id, "j.0", [failure], RetryRule(max_tries=1))
    row = json.loads(_queue(store_url, tmp_path, "dead")[1])
    assert (row["segment"], row["reason"], row["last_error"]) == ("j.0", "max_tries", "timeout")
    told = _queue(store_url, tmp_path, "retry-failed")
    assert told[:2] == (0, "0 rows wait again\n")
    assert _queue(store_url, tmp_path, "confirm-clock")[1] == "the clock had not leapt\n"
    assert _queue(store_url, tmp_path, "purge", "batch_none")[0] == 1
