"""Queue and bill as the command line looks at them, in a process of its own."""

from collections.abc import Iterator
from typing import Any

from gateway.bootstrap.store_url import store_url
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.metering.hours import hour_of, last_hours
from gateway.metering.record import CallRecord
from gateway.metering.recovery import read_records
from gateway.metering.report import UsageReport, usage_report
from gateway.store.blobs import LocalBlobs
from gateway.store.client import connect
from gateway.store.controls import Controls
from gateway.store.queue import QueueClient
from gateway.store.usage import UsageTotals


async def queue_stats(settings: Settings) -> dict[str, dict[str, Any]]:
    """Counters of every shard."""
    client = connect(store_url(settings))
    try:
        queue = QueueClient(client)
        return {shard: await queue.stats(shard) for shard in await queue.shards()}
    finally:
        await client.aclose()


async def queue_pauses(settings: Settings) -> dict[str, Any]:
    """What an operator has paused; empty when that is nothing. Jobs are not among it."""
    controls = Controls(LocalBlobs(settings.data_dir))
    scopes = [pause.scope for pause in await controls.pauses() if pause.paused]
    found = {
        "everything": any(scope.kind == "shard" for scope in scopes),
        "tenants": sorted(scope.name for scope in scopes if scope.kind == "tenant"),
        "batches": await controls.paused_batches(),
    }
    return found if any(found.values()) else {}


async def queue_audit(settings: Settings) -> dict[str, list[str]]:
    """Violated invariants of every shard; an empty list is a healthy one."""
    client = connect(store_url(settings))
    try:
        queue = QueueClient(client)
        return {shard: await queue.audit(shard) for shard in await queue.shards()}
    finally:
        await client.aclose()


async def usage_of_hours(settings: Settings, hours: int, tenant: str | None) -> UsageReport:
    """The bill of the last ``hours`` hours, the running one included."""
    redis = connect(store_url(settings))
    try:
        wanted = last_hours(SystemClock().now(), hours)
        return await usage_report(UsageTotals(redis), QueueClient(redis), wanted, tenant)
    finally:
        await redis.aclose()


def records_of_hours(settings: Settings, hours: int, tenant: str | None) -> Iterator[CallRecord]:
    """Records kept in this data directory of calls that ended in the last ``hours`` hours."""
    wanted = set(last_hours(SystemClock().now(), hours))
    for record in read_records(settings.data_dir / "journal"):
        ours = tenant is None or record.intent.tenant == tenant
        if ours and hour_of(record.outcome.ended_at) in wanted:
            yield record
