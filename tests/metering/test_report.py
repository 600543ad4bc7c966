"""The bill."""

from collections.abc import Iterable, Mapping, Sequence

from gateway.core.lanes import Lane
from gateway.core.usage import Usage
from gateway.metering.report import UsageRow, usage_report
from gateway.store.client import StoreClient
from gateway.store.queue import QueueClient
from gateway.store.usage import TotalsRow, UsageTotals
from tests.support.segments import SHARD, outcome, segment

HOUR = "2026113005"
RECORDED = [
    TotalsRow("t1", HOUR, "interactive", "m1", "k1", "ok", 3, 30, 60, 5, 1),
    TotalsRow("t1", HOUR, "interactive", "m1", "k2", "cancelled", 1, 10, 7, estimated=1),
    TotalsRow("t1", HOUR, "batch", "m1", "", "ok", 5, 50, 100),
    TotalsRow("t2", HOUR, "elastic", "m2", "k3", "failed", 1),
]


class Store:
    """Four sums in the totals, four delivered rows in the queue's meter."""

    async def tenants(self) -> list[str]:
        return ["t1", "t2"]

    async def rows(self, tenant: str, hours: Iterable[str]) -> list[TotalsRow]:
        return [row for row in RECORDED if row.tenant == tenant and row.hour in hours]

    async def shards(self) -> list[str]:
        return ["m1.0", "m1.1"]

    async def tenants_of(self, shard: str) -> list[str]:
        return ["t1"]

    async def meter(
        self, shard: str, tenant: str, hours: Sequence[str]
    ) -> Mapping[str, Mapping[str, int]]:
        if tenant != "t1" or HOUR not in hours:
            return {}
        return {"m1": {"requests": 2, "failed": 0, "prompt": 20, "completion": 40}}


async def test_each_lane_model_and_tenant_has_a_row() -> None:
    """Keys and ways to end are summed up; estimates are counted."""
    report = await usage_report(Store(), Store(), [HOUR])
    interactive, elastic, batch = report.rows
    assert interactive == UsageRow(
        "interactive", "m1", "t1", 4, 1, 1, Usage(40, 67, 5, 1, estimated=True)
    )
    assert interactive.estimated_share == 0.25
    assert (elastic.lane, elastic.failed, elastic.usage) == ("elastic", 1, Usage())
    assert batch.lane == "batch"


async def test_batch_rows_are_billed_as_delivered_and_the_rest_is_waste() -> None:
    """Five were computed, four delivered: the fifth is waste and not part of the bill."""
    report = await usage_report(Store(), Store(), [HOUR])
    batch = report.lane(Lane.BATCH)
    assert (batch.requests, batch.usage) == (4, Usage(40, 80))
    assert batch.wasted == Usage(10, 20)


async def test_one_tenant_and_other_hours() -> None:
    """The bill is of whom and when one asks for."""
    report = await usage_report(Store(), Store(), [HOUR], tenant="t2")
    assert {row.tenant for row in report.rows} == {"t2"}
    assert not (await usage_report(Store(), Store(), ["2026113006"])).rows


async def test_a_delivery_is_billed_before_its_record_is_shipped(store: StoreClient) -> None:
    """The queue knows the tenant while the journal still waits for the store."""
    queue = QueueClient(store)
    await queue.enqueue(SHARD, segment("a.0", 2, tenant="new"))
    lease = await queue.lease(SHARD, "w", 2, 10**9, 5000)
    assert lease is not None
    await queue.commit(SHARD, lease.id, "a.0", [outcome(0), outcome(1)], HOUR)
    report = await usage_report(UsageTotals(store), queue, [HOUR])
    assert report.lane(Lane.BATCH).usage == Usage(3, 4, 2, 2)


async def test_as_json() -> None:
    """Rows and the sums of every lane, flat."""
    shown = (await usage_report(Store(), Store(), [HOUR])).to_json()
    assert shown["from"] == shown["to"] == HOUR
    assert len(shown["rows"]) == 3
    assert shown["lanes"]["interactive"]["completion_tokens"] == 67
    assert shown["lanes"]["batch"]["wasted_completion_tokens"] == 20
    assert set(shown["lanes"]) == {"interactive", "elastic", "batch"}
