"""What can be read of the queue while it works."""

import pytest

from gateway.core.usage import Usage
from gateway.core.work import SegmentStatus
from gateway.store.client import StoreClient
from gateway.store.keys import shard_key
from gateway.store.queue import QueueClient
from tests.support.segments import HOUR, SHARD, outcome, segment


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


async def test_an_unknown_segment_is_nothing(queue: QueueClient) -> None:
    """No segment, no references, no counters: and no error either."""
    assert await queue.segment(SHARD, "none.0") is None
    assert await queue.refs(SHARD, "none.0") == (b"", b"")
    assert await queue.good(SHARD, "none.0") == b""
    assert await queue.shards() == []
    assert await queue.audit(SHARD) == []


async def test_a_segment_shows_what_was_put_in(queue: QueueClient) -> None:
    """Owner, model, size and state are there before any row ran."""
    await queue.enqueue(SHARD, segment("a.0", 7, tenant="acme"))
    view = await queue.segment(SHARD, "a.0")
    assert view is not None
    assert (view.job, view.tenant, view.model, view.n) == ("a", "acme", "m", 7)
    assert (view.status, view.closing) == (SegmentStatus.QUEUED, SegmentStatus.QUEUED)
    assert (view.ok, view.bad, view.leased, view.usage) == (0, 0, 0, Usage())
    assert await queue.shards() == [SHARD]


async def test_done_bits_and_references_are_in_row_order(queue: QueueClient) -> None:
    """The first row is the highest bit; 16 bytes tell where its line lies."""
    await queue.enqueue(SHARD, segment("a.0", 9))
    await queue.commit(SHARD, "", "a.0", [outcome(0), outcome(8, ok=False)], HOUR)
    done, refs = await queue.refs(SHARD, "a.0")
    assert done == b"\x80\x80"
    assert refs[128:144] == b"\x01\0\0\0" + (80).to_bytes(8, "little") + b"\x0a\0\0\0"
    assert await queue.good(SHARD, "a.0") == b"\x80"


async def test_the_meter_adds_up_over_hours_and_models(queue: QueueClient) -> None:
    """Each hour has its own sums; failed rows are requests, too."""
    await queue.enqueue(SHARD, segment("a.0", 4))
    await queue.commit(SHARD, "", "a.0", [outcome(0), outcome(1, ok=False)], "2026113006")
    await queue.commit(SHARD, "", "a.0", [outcome(2)], "2026113007")
    one = await queue.meter(SHARD, "t", ["2026113007"])
    both = await queue.meter(SHARD, "t", ["2026113006", "2026113007", "2026113008"])
    assert one["m"]["prompt"] == 3
    assert both["m"] == {
        "requests": 3,
        "failed": 1,
        "prompt": 6,
        "completion": 9,
        "cached": 3,
        "reasoning": 3,
    }
    assert await queue.meter(SHARD, "other", ["2026113006"]) == {}


async def test_stats_count_what_waits_and_what_runs(queue: QueueClient) -> None:
    """Rows are waiting, leased, or done; never two of these."""
    await queue.enqueue(SHARD, segment("a.0", 10))
    lease = await queue.lease(SHARD, "w", 4, 10**9, 5000)
    assert lease is not None
    await queue.commit(SHARD, lease.id, "a.0", [outcome(0)], HOUR)
    stats = await queue.stats(SHARD)
    figures = ("segments", "rows_waiting", "rows_leased", "leases", "finishing")
    assert [stats[name] for name in figures] == [1, 6, 3, 1, 0]


@pytest.mark.parametrize(
    ("command", "violated"),
    [
        (("SETBIT", shard_key(SHARD, "d:a.0"), "5", "1"), "I2"),
        (("HINCRBY", shard_key(SHARD, "s:a.0"), "cur", "1"), "I1"),
        (("ZREM", shard_key(SHARD, "q:t"), "a.0"), "I1"),
        (("HINCRBY", shard_key(SHARD, "tn:t"), "rows", "1"), "I11"),
    ],
)
async def test_the_audit_names_what_is_wrong(
    queue: QueueClient, store: StoreClient, command: tuple[str, ...], violated: str
) -> None:
    """A bit, a cursor, a queue entry or a counter that was changed behind our back is found."""
    await queue.enqueue(SHARD, segment("a.0", 10))
    await queue.lease(SHARD, "w", 4, 10**9, 5000)
    assert await queue.audit(SHARD) == []
    await store.execute_command(*command)
    assert any(text.startswith(violated) for text in await queue.audit(SHARD))
