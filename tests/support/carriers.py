"""A carrier beside a dispatcher of the rig, and the provider it uses."""

from typing import Any

from gateway.core.clock import SystemClock
from gateway.core.usage import Usage
from gateway.dispatch.carriage import CarryRules, Means
from gateway.dispatch.carrier import Carrier
from gateway.dispatch.carrying import CarryingPool
from gateway.providers.remote_batches import RemoteBatches
from gateway.store.blobs import LocalBlobs
from gateway.store.carries import Carries
from tests.support.batch_provider import BatchProvider
from tests.support.rig import SHARD, Rig
from tests.support.routes import a_route

MADE: list[Carrier] = []
RULES = CarryRules("24h", slack=5.0, collect=0.1, poll=0.05, rows=100, batches=2)


def number(request: dict[str, Any]) -> dict[str, Any]:
    """A good answer that says the row's number."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    body = {"n": request["body"]["n"], "model": request["body"]["model"], "usage": usage}
    return {"response": {"status_code": 200, "request_id": "r", "body": body}, "error": None}


async def fine(_: int) -> Usage:
    """A direct target that answers."""
    return Usage(3, 2)


def carrying(
    rig: Rig, provider: BatchProvider, rules: CarryRules = RULES, *, alone: bool = False
) -> None:
    """Put a carrier beside the rig's pool, or in its place."""
    clock = SystemClock()
    api = RemoteBatches("p", provider.url, clock)
    carries = Carries(LocalBlobs(rig.root))
    means = Means(api, rules, carries, rig.runner, rig.settler, rig.holdings, clock)
    route = a_route("p", "their-m")
    carrier = Carrier(means, lambda _: route)
    pool = CarryingPool(carrier, None if alone else rig.pool)
    rig.dispatcher._pools = {SHARD: pool}
    MADE.append(carrier)
