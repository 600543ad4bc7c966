"""Totals in a real Valkey."""

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.store.client import StoreClient, connect
from gateway.store.usage import TotalsRow, UsageTotals, field_name

HOUR = "2026113005"


def deltas(requests: int, completion: int) -> dict[str, dict[str, int]]:
    """Sums of one group in one hour."""
    group = ("interactive", "org/m|1", "k1", "ok")
    return {
        HOUR: {
            field_name(*group, "requests"): requests,
            field_name(*group, "completion"): completion,
        }
    }


async def test_a_stretch_is_counted_once(store: StoreClient) -> None:
    """Sent twice, from the wrong place or late, it changes nothing; the mark is the answer."""
    totals = UsageTotals(store)
    assert await totals.ship("t1", "f", 0, 100, deltas(2, 40)) == 0
    assert await totals.ship("t1", "f", 0, 100, deltas(2, 40)) == 100
    assert await totals.ship("t1", "f", 50, 150, deltas(2, 40)) == 100
    assert await totals.ship("t1", "f", 100, 150, deltas(1, 2)) == 100
    row = TotalsRow("t1", HOUR, "interactive", "org/m|1", "k1", "ok", requests=3, completion=42)
    assert await totals.rows("t1", [HOUR, "2026113006"]) == [row]


async def test_tenants_and_files_are_apart(store: StoreClient) -> None:
    """Each tenant has its marks and sums, whatever its name."""
    totals = UsageTotals(store)
    for tenant in ("a", "b}{x"):
        for file in ("f", "g"):
            assert await totals.ship(tenant, file, 0, 10, deltas(1, 1)) == 0
    assert await totals.tenants() == ["a", "b}{x"]
    for tenant in ("a", "b}{x"):
        (row,) = await totals.rows(tenant, [HOUR])
        assert row.requests == 2


async def test_marks_are_dropped_with_their_file(store: StoreClient) -> None:
    """Nothing grows with the number of files."""
    totals = UsageTotals(store)
    await totals.ship("t1", "f", 0, 10, deltas(1, 1))
    await totals.forget("t1", "f")
    assert await totals.ship("t1", "f", 0, 0, {}) == 0


async def test_keys_of_a_tenant_share_its_tag_and_hours_end(store: StoreClient) -> None:
    """One slot per tenant; an hour is dropped after 400 days."""
    await UsageTotals(store).ship("t1", "f", 0, 10, deltas(1, 1))
    names = {str(name, "utf-8") for name in await store.execute_command("KEYS", "*")}
    assert names == {"gw:usage-tenants", "gw:{t:t1}:journals", f"gw:{{t:t1}}:usage:{HOUR}"}
    assert await store.ttl(f"gw:{{t:t1}}:usage:{HOUR}") > 399 * 86400


async def test_a_store_that_is_away_is_said_so() -> None:
    """One error class, at once."""
    client = connect("redis://127.0.0.1:1")
    totals = UsageTotals(client)
    with pytest.raises(StoreUnavailable):
        await totals.ship("t1", "f", 0, 10, {})
    with pytest.raises(StoreUnavailable):
        await totals.rows("t1", [HOUR])
    await client.aclose()
