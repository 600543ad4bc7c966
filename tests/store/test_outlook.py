"""The work that is left, and forecasts, as the queue keeps them."""

import pytest

from gateway.store.client import StoreClient
from gateway.store.outlook import Forecast, Outlook
from gateway.store.queue import QueueClient
from tests.support.segments import HOUR, SHARD, outcome, segment


@pytest.fixture
def queue(store: StoreClient) -> QueueClient:
    """A queue on an empty server."""
    return QueueClient(store)


async def test_what_is_left(queue: QueueClient) -> None:
    """By deadline, with rows and tokens not done; rows delivered per hour, of all tenants."""
    assert await queue.outlook(SHARD, [HOUR]) == Outlook({}, ())
    await queue.enqueue(SHARD, segment("a.0", 5, tenant="a", weight=2.0))
    await queue.enqueue(SHARD, segment("b.0", 3, tenant="b", window_ms=1000))
    await queue.commit(SHARD, "", "a.0", [outcome(0), outcome(1, ok=False)], HOUR)
    await queue.commit(SHARD, "", "b.0", [outcome(0)], HOUR)
    found = await queue.outlook(SHARD, ["2026113005", HOUR])
    assert found.delivered == {"2026113005": 0, HOUR: 3}
    first, second = found.segments
    assert (first.segment, first.tenant, first.rows, first.tokens) == ("b.0", "b", 2, 200)
    assert (second.segment, second.weight, second.rows, second.tokens) == ("a.0", 2.0, 3, 300)
    assert not second.paused
    assert second.turn_ms == second.deadline_ms


async def test_further_work_is_told_in_sum(queue: QueueClient) -> None:
    """Beyond the segments that are told one by one, a sum for each tenant."""
    for number in range(3):
        await queue.enqueue(SHARD, segment(f"a{number}.0", 2, tenant="a", weight=2.0))
    await queue.enqueue(SHARD, segment("b.0", 5, tenant="b", window_ms=9_000_000))
    found = (await queue.outlook(SHARD, [HOUR], 2)).segments
    assert [s.segment for s in found] == ["a0.0", "a1.0", "", ""]
    rest = {s.tenant: (s.rows, s.tokens, s.weight) for s in found[2:]}
    assert rest == {"a": (2, 200, 2.0), "b": (5, 500, 1.0)}
    assert all(s.turn_ms > found[1].turn_ms for s in found[2:])
    assert all(s.segment for s in (await queue.outlook(SHARD, [HOUR])).segments)


async def test_forecasts_are_kept_for_a_while(queue: QueueClient, store: StoreClient) -> None:
    """Whole or none: a new set replaces the old one, and it is forgotten by itself."""
    await queue.put_forecasts(SHARD, {"a.0": Forecast(5, 1.5), "b.0": Forecast(None, 0.0, True)})
    assert await queue.forecast(SHARD, "a.0") == Forecast(5, 1.5)
    assert await queue.forecast(SHARD, "b.0") == Forecast(None, 0.0, stalled=True)
    assert 0 < await store.execute_command("TTL", f"gw:{{{SHARD}}}:fc") <= 30
    await queue.put_forecasts(SHARD, {"a.0": Forecast(None, 0.0, paused=True)})
    assert await queue.forecast(SHARD, "a.0") == Forecast(None, 0.0, paused=True)
    await queue.put_forecasts(SHARD, {"a.0": Forecast(6, 1.5)})
    assert await queue.forecast(SHARD, "b.0") is None
    await queue.put_forecasts(SHARD, {})
    assert await queue.forecast(SHARD, "a.0") is None
