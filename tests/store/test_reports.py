"""What processes tell of targets, over a real server."""

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.store.client import StoreClient, connect
from gateway.store.reports import TargetReports
from tests.support.clock import ManualClock


async def test_the_latest_of_each_process_is_read(store: StoreClient) -> None:
    """With its role, ordered by name."""
    reports = TargetReports(store, ManualClock())
    await reports.put("g2", "gateway", {"up": {"n": 1}})
    await reports.put("d1", "dispatcher", {"up": {"n": 2}})
    await reports.put("g2", "gateway", {"up": {"n": 3}})
    assert await reports.fresh() == [
        ("d1", "dispatcher", {"up": {"n": 2}}),
        ("g2", "gateway", {"up": {"n": 3}}),
    ]


async def test_who_is_silent_is_left_out_and_then_forgotten(store: StoreClient) -> None:
    """After 15 seconds, and a minute; the whole when nobody tells anything."""
    clock = ManualClock()
    reports = TargetReports(store, clock)
    await reports.put("dead", "gateway", {})
    clock.advance(16)
    assert await reports.fresh() == []
    clock.advance(45)
    await reports.put("alive", "gateway", {})
    assert await store.hkeys("gw:{sys}:targets") == [b"alive"]
    assert 0 < await store.ttl("gw:{sys}:targets") <= 60


async def test_a_server_that_is_away_is_said_so() -> None:
    """By the product's error."""
    reports = TargetReports(connect("redis://127.0.0.1:1"), ManualClock())
    with pytest.raises(StoreUnavailable):
        await reports.put("g", "gateway", {})
