"""The count of what late work costs, over a real server."""

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.store.client import StoreClient, connect
from gateway.store.late_cost import Held, LateCost

DAY = "86400-20000"


async def test_dispatchers_share_one_cap(store: StoreClient) -> None:
    """Each holds what it wants as far as the others leave it, and telling it twice is once."""
    a, b = LateCost(store, "a"), LateCost(store, "b")
    assert await a.hold("cloud", DAY, 70, used=0, cap=100) == Held(70, 70)
    assert await a.hold("cloud", DAY, 70, used=0, cap=100) == Held(70, 70)
    assert await b.hold("cloud", DAY, 70, used=0, cap=100) == Held(30, 100)
    assert await a.hold("cloud", DAY, 20, used=20, cap=100) == Held(20, 50)
    assert await b.hold("cloud", DAY, 200, used=0, cap=100) == Held(80, 100)


async def test_what_was_used_is_counted_whatever_the_cap_says(store: StoreClient) -> None:
    """Answers may be longer than estimated; then nobody gets more."""
    a, b = LateCost(store, "a"), LateCost(store, "b")
    assert await a.hold("cloud", DAY, 130, used=120, cap=100) == Held(120, 120)
    assert await b.hold("cloud", DAY, 10, used=0, cap=100) == Held(0, 120)


async def test_targets_and_windows_are_counted_apart(store: StoreClient) -> None:
    """And forgotten when the next window is over."""
    a = LateCost(store, "a")
    await a.hold("cloud", DAY, 100, used=0, cap=100)
    assert (await LateCost(store, "b").hold("other", DAY, 5, used=0, cap=100)).mine == 5
    assert (await LateCost(store, "b").hold("cloud", "86400-20001", 5, used=0, cap=100)).mine == 5
    left = await store.ttl(f"gw:{{sys}}:late:{DAY}:cloud")
    assert 2 * 86400 < left <= 2 * 86400 + 60


async def test_large_sums_are_exact(store: StoreClient) -> None:
    """Up to a billion in millionths."""
    held = await LateCost(store, "a").hold("c", DAY, 10**15 + 1, used=0, cap=10**15 + 7)
    assert held == Held(10**15 + 1, 10**15 + 1)


async def test_a_server_that_is_away_is_said_so() -> None:
    """By the product's error."""
    with pytest.raises(StoreUnavailable):
        await LateCost(connect("redis://127.0.0.1:1"), "a").hold("c", DAY, 1, used=0, cap=1)
