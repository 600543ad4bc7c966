"""Queue and bill as the command line looks at them, in a process of its own."""

from typing import Any

from gateway.bootstrap.store_url import store_url
from gateway.core.clock import SystemClock
from gateway.core.settings import Settings
from gateway.metering.hours import last_hours
from gateway.metering.report import UsageReport, usage_report
from gateway.store.client import connect
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
